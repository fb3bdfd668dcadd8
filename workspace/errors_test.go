package workspace_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestErrorMessages(t *testing.T) {
	g := newGrounds(t)
	link(t, g.out, filepath.Join(g.a, "d/out"))
	link(t, "../../out/secret", filepath.Join(g.b, "d/up"))
	link(t, "d/up", filepath.Join(g.b, "chained"))
	link(t, "loop", filepath.Join(g.a, "loop"))
	mkdir(t, filepath.Join(g.a, "private"))
	ws := openWith(t,
		workspace.Options{Policy: workspace.Policy{Deny: dirs(t, filepath.Join(g.a, "private"))}},
		g.a, g.b)
	roots := fmt.Sprintf(" (the folders are %s, %s)", g.a, g.b)
	for path, want := range map[string]string{
		"../out/secret": "../out/secret is outside the session's folders: " + g.out +
			" is in none of them" + roots,
		"..": ".. is outside the session's folders: it leads to " + g.dir +
			", which is in none of them" + roots,
		"/etc/passwd": "/etc/passwd is outside the session's folders: /etc is in none of them" +
			roots,
		"d/out/secret": "d/out/secret is outside the session's folders: the link " + g.a +
			"/d/out leads to " + g.out +
			", which is in none of them" + roots,
		"../B/chained": "../B/chained is outside the session's folders: the link " + g.b +
			"/d/up leads to " + g.out +
			", which is in none of them" + roots,
		"loop": "loop leads through more than 40 links, perhaps in a circle: the last was " +
			g.a + "/loop: too many levels of symbolic links",
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
	require.ErrorIs(t, err, syscall.ELOOP)
}

func TestErrorMessagesListFewRoots(t *testing.T) {
	dir := realDir(t)
	var roots []string
	for i := range 10 {
		roots = append(roots, mkdir(t, filepath.Join(dir, fmt.Sprint(i))))
	}
	_, err := open(t, roots[0], roots[1:]...).Open("../x")
	require.ErrorContains(t, err, "(the folders are "+strings.Join(roots[:4], ", ")+" and 6 more)")
	_, err = open(t, roots[0]).Open("../x")
	require.ErrorContains(t, err, "(the only folder is "+roots[0]+")")
}
