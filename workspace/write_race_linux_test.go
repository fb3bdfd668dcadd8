package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// A race is over after so many tries, or so many writes that succeeded, which wait for the disk.
const (
	writeTries = 3000
	raceWrites = 60
)

func TestC5_NoByteIsWrittenOutsideWhileNamesAreSwapped(t *testing.T) {
	for name, c := range map[string]struct {
		swap [2]string // below the grounds
		dir  string
	}{
		"directory with a link out":            {[2]string{"A/d", "A/l"}, "d/e"},
		"the last directory with a link out":   {[2]string{"A/d/e", "A/d/l"}, "d/e"},
		"file with a link out":                 {[2]string{"A/d/e/f", "A/d/e/l"}, "d/e"},
		"file with a dangling link out":        {[2]string{"A/d/e/f", "A/d/e/dangling"}, "d/e"},
		"behind a link to another root":        {[2]string{"A/d", "A/l"}, "../B/across/e"},
		"a root itself":                        {[2]string{"A", "l"}, "d/e"},
		"a link in with a link out":            {[2]string{"A/in", "A/l"}, "in/e"},
		"a link across with a link out":        {[2]string{"B/across", "B/l"}, "../B/across/e"},
		"a file with a fifo":                   {[2]string{"A/d/e/f", "A/d/e/fifo"}, "d/e"},
		"a directory with a denied one's link": {[2]string{"A/d", "A/to-denied"}, "d/e"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			for _, dir := range []string{g.out, filepath.Join(g.out, "e"), filepath.Join(g.out, "d/e"), filepath.Join(g.a, "denied/e")} {
				write(t, filepath.Join(dir, "f"), "SECRET")
			}
			for _, path := range []string{"A/l", "A/d/l", "B/l", "l"} {
				link(t, g.out, filepath.Join(g.dir, path))
			}
			link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "d/e/l"))
			link(t, filepath.Join(g.out, "new"), filepath.Join(g.a, "d/e/dangling"))
			link(t, "d", filepath.Join(g.a, "in"))
			link(t, "denied", filepath.Join(g.a, "to-denied"))
			link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e/fifo"), 0o644))
			ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "denied"))}}, g.a, g.b)
			out, denied := picture(t, g.out), picture(t, filepath.Join(g.a, "denied"))

			stop := swapping(t, filepath.Join(g.dir, c.swap[0]), filepath.Join(g.dir, c.swap[1]))
			good, tries := 0, 0
			for ; tries < writeTries && good < raceWrites; tries++ {
				path := c.dir + "/f"
				if tries%2 == 1 {
					path = c.dir + "/new" + strconv.Itoa(tries)
				}
				_, err := put(ws, path, "WRITTEN")
				require.True(t, err == nil || expected(err), "%v", err)
				if err == nil {
					good++
				}
			}
			stop()
			t.Logf("%d of %d writes succeeded", good, tries)
			require.Equal(t, out, picture(t, g.out))
			if _, err := os.Lstat(filepath.Join(g.a, "denied/e")); errors.Is(err, os.ErrNotExist) {
				return // the root stands under its other name
			}
			require.Equal(t, denied, picture(t, filepath.Join(g.a, "denied")))
			for path := range picture(t, filepath.Join(g.b, "d")) {
				require.NotContains(t, path, ".acp-agent-")
			}
		})
	}
}

func TestC5_TwoWhoMakeOneFile(t *testing.T) {
	g := newGrounds(t)
	for i := range 100 {
		path := "new" + strconv.Itoa(i)
		made := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.ws.WriteFile(t.Context(), path, []byte("x"), workspace.WriteOptions{Create: workspace.CreateOnly})
				made <- err
			}()
		}
		one, two := <-made, <-made
		if one == nil {
			one, two = two, one
		}
		require.NoError(t, two)
		require.ErrorIs(t, one, os.ErrExist, "exactly one of them has made it")
	}
}
