package workspace_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// swapping exchanges two names over and over until the test is done with it.
func swapping(t *testing.T, one, other string) (stop func()) {
	exchange := func() error {
		return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	if err := exchange(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skip("this file system cannot exchange names:", err)
	}
	var stopped atomic.Bool
	done := make(chan error)
	go func() {
		for !stopped.Load() {
			if err := exchange(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		stopped.Store(true)
		require.NoError(t, <-done)
	}
}

const raceReads = 20_000

// expected reports whether err is one that a race may bring about: never one that says something
// outside was reached, which shows as text.
func expected(err error) bool {
	var (
		outside *workspace.OutsideError
		special *workspace.SpecialFileError
		denied  *workspace.DeniedError
		path    *fs.PathError
	)
	return errors.As(err, &outside) || errors.As(err, &special) || errors.As(err, &denied) || errors.As(err, &path)
}

func TestC5_NoByteFromOutsideWhileNamesAreSwapped(t *testing.T) {
	for name, c := range map[string]struct {
		swap [2]string // below the grounds
		path string
	}{
		"directory with a link out":             {[2]string{"A/d", "A/l"}, "d/e/f"},
		"directory with a relative link out":    {[2]string{"A/d", "A/r"}, "d/e/f"},
		"directory in the middle":               {[2]string{"A/d/e", "A/d/l"}, "d/e/f"},
		"file with a link out":                  {[2]string{"A/d/e/f", "A/d/e/l"}, "d/e/f"},
		"behind a link to another root":         {[2]string{"A/d", "A/l"}, "../B/across/e/f"},
		"a root itself":                         {[2]string{"A", "l"}, "d/e/f"},
		"a link in with a link out":             {[2]string{"A/in", "A/l"}, "in/e/f"},
		"a link across with a link out":         {[2]string{"B/across", "B/l"}, "../B/across/e/f"},
		"a file with a fifo":                    {[2]string{"A/d/e/f", "A/d/e/fifo"}, "d/e/f"},
		"a directory with a fifo":               {[2]string{"A/d/e", "A/d/e-fifo"}, "d/e/f"},
		"a directory with a denied one's link":  {[2]string{"A/d", "A/to-denied"}, "d/e/f"},
		"a directory with a denied one's alias": {[2]string{"A/d", "A/abs-to-denied"}, "d/e/f"},
		"behind a link, a directory with one":   {[2]string{"A/d/e", "A/d/to-denied"}, "../B/across/e/f"},
		"behind a link, a file with one":        {[2]string{"A/d/e/f", "A/d/e/to-denied"}, "../B/across/e/f"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			write(t, filepath.Join(g.out, "e/f"), "SECRET")
			write(t, filepath.Join(g.out, "f"), "SECRET")
			write(t, filepath.Join(g.out, "d/e/f"), "SECRET")
			write(t, filepath.Join(g.a, "denied/e/f"), "SECRET")
			write(t, filepath.Join(g.a, "d/denied/f"), "SECRET")
			write(t, filepath.Join(g.a, "d/e/denied/f"), "SECRET")
			link(t, "denied", filepath.Join(g.a, "d/to-denied"))
			link(t, "denied/f", filepath.Join(g.a, "d/e/to-denied"))
			for _, path := range []string{"A/l", "A/d/l", "B/l", "l"} {
				link(t, g.out, filepath.Join(g.dir, path))
			}
			link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "d/e/l"))
			link(t, "../out", filepath.Join(g.a, "r"))
			link(t, "d", filepath.Join(g.a, "in"))
			link(t, "denied", filepath.Join(g.a, "to-denied"))
			link(t, filepath.Join(g.a, "denied"), filepath.Join(g.a, "abs-to-denied"))
			link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e/fifo"), 0o644))
			require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "d/e-fifo"), 0o644))
			ws := openWith(t, workspace.Options{Policy: workspace.Policy{
				Deny: dirs(t, filepath.Join(g.a, "denied"), filepath.Join(g.a, "d/denied"), filepath.Join(g.a, "d/e/denied")),
			}}, g.a, g.b)

			stop := swapping(t, filepath.Join(g.dir, c.swap[0]), filepath.Join(g.dir, c.swap[1]))
			defer stop()
			reads := raceReads / 10
			if name == "directory with a link out" {
				reads = raceReads
			}
			good := 0
			for i := range reads {
				text, err := raced(ws, c.path, i)
				if err != nil {
					require.True(t, expected(err), "%v", err)
					continue
				}
				require.Equal(t, "A/d/e/f", text)
				good++
			}
			t.Logf("%d of %d reads succeeded", good, reads)
		})
	}
}

// raced reads path in one of the ways that there are.
func raced(ws *workspace.Workspace, path string, i int) (string, error) {
	if i%4 != 0 {
		text, _, err := read(ws, path)
		return text, err
	}
	d, err := ws.OpenDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer d.Close()
	f, err := d.Open(filepath.Base(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text := make([]byte, 16)
	n, err := f.ReadAt(text, 0)
	if n > 0 {
		err = nil
	}
	return string(text[:n]), err
}

func TestC5_AFileThatIsReplacedIsReadAsItWasOrIs(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
	write(t, filepath.Join(g.a, "d/e/g"), "A/d/e/f")
	stop := swapping(t, filepath.Join(g.a, "d/e/f"), filepath.Join(g.a, "d/e/g"))
	defer stop()
	for i := range 2000 {
		text, err := raced(g.ws, "../B/across/e/f", i)
		require.NoError(t, err)
		require.Equal(t, "A/d/e/f", text)
	}
}
