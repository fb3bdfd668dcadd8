package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// What a person reads names the path that was asked for, the step that failed, and what there is.
func TestErrors_SayWhatIsWrongAndWhere(t *testing.T) {
	g := newGrounds(t)
	link(t, g.out, filepath.Join(g.a, "d/out"))
	link(t, "../../out/secret", filepath.Join(g.b, "d/up"))
	link(t, "d/up", filepath.Join(g.b, "chained"))
	link(t, "loop", filepath.Join(g.a, "loop"))
	mkdir(t, filepath.Join(g.a, "private"))
	ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "private"))}}, g.a, g.b)
	roots := fmt.Sprintf(" (the roots are %s, %s)", g.a, g.b)
	for path, want := range map[string]string{
		"../out/secret": "../out/secret is outside the session's roots: " + g.out + " is in none of them" + roots,
		"..":            ".. is outside the session's roots: it leads to " + g.dir + ", which is in none of them" + roots,
		"/etc/passwd":   "/etc/passwd is outside the session's roots: /etc is in none of them" + roots,
		"d/out/secret": "d/out/secret is outside the session's roots: the link " + g.a + "/d/out leads to " + g.out +
			", which is in none of them" + roots,
		"../B/chained": "../B/chained is outside the session's roots: the link " + g.b + "/d/up leads to " + g.out +
			", which is in none of them" + roots,
		"loop":        "loop leads through more than 40 links, perhaps in a circle: the last was " + g.a + "/loop",
		"private/key": "private/key is refused by policy: " + g.a + "/private is denied",
		"missing":     "open missing: no such file or directory",
		"f/":          "open f/: not a directory",
		"d":           "open d: is a directory",
	} {
		_, err := ws.Open(path)
		require.EqualError(t, err, want)
	}

	_, err := ws.Open("../B/chained")
	var outside *workspace.OutsideError
	require.ErrorAs(t, err, &outside)
	require.Equal(t, "../B/chained", outside.Path)
	require.Equal(t, filepath.Join(g.b, "d/up"), outside.Link)
	require.True(t, outside.Roots.Equal(ws.Roots()))
	_, err = ws.Open("..")
	require.ErrorAs(t, err, &outside)
	require.Empty(t, outside.Link, "no link led out")

	_, err = ws.Open("loop")
	var loop *workspace.TooManyLinksError
	require.ErrorAs(t, err, &loop)
	require.Equal(t, 40, loop.Limit)
	require.ErrorIs(t, err, syscall.ELOOP)
}

func TestErrors_NameAFewOfManyRoots(t *testing.T) {
	dir := realDir(t)
	var roots []string
	for i := range 10 {
		roots = append(roots, mkdir(t, filepath.Join(dir, fmt.Sprint(i))))
	}
	_, err := open(t, roots[0], roots[1:]...).Open("../x")
	require.ErrorContains(t, err, "(the roots are "+strings.Join(roots[:4], ", ")+" and 6 more)")
	_, err = open(t, roots[0]).Open("../x")
	require.ErrorContains(t, err, "(the only root is "+roots[0]+")")
}

func TestDirectory_EntriesAreBounded(t *testing.T) {
	dir := realDir(t)
	for i := range 12 {
		write(t, filepath.Join(dir, "d", fmt.Sprintf("%02d", i)), "")
	}
	write(t, filepath.Join(dir, "e/f"), "")
	for bound, full := range map[int]bool{11: false, 12: true, 13: true, 0: true} {
		ws := openWith(t, workspace.Options{MaxEntries: bound}, dir)
		d, err := ws.OpenDir("d")
		require.NoError(t, err)
		defer d.Close()
		for range 2 { // a directory can be listed again
			entries, err := d.Entries(t.Context())
			if full {
				require.NoError(t, err)
				require.Len(t, entries, 12)
				continue
			}
			var cut *workspace.LimitError
			require.ErrorAs(t, err, &cut)
			require.EqualValues(t, bound, cut.Limit)
			require.Equal(t, filepath.Join(dir, "d"), cut.Path)
			require.Len(t, entries, bound, "what was read comes with it")
			require.True(t, isSorted(entries))
		}
		var walked []string
		err = walk(t.Context(), ws, ".", func(v visit) error {
			if v.Err == nil {
				walked = append(walked, v.Ref().Rel())
			}
			return nil
		})
		require.NoError(t, err)
		require.Contains(t, walked, "e/f", "the walk goes on elsewhere")
	}
}

func isSorted(entries []workspace.Entry) bool {
	for i := range len(entries) - 1 {
		if entries[i].Name >= entries[i+1].Name {
			return false
		}
	}
	return true
}

func TestDirectory_ListingEndsWithItsContext(t *testing.T) {
	g := newGrounds(t)
	d, err := g.ws.OpenDir(".")
	require.NoError(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = d.Entries(ctx)
	require.ErrorIs(t, err, enough)
}
