package folders

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Folders are written by their names below the directory of a test; "!" stands before those that
// are read-only.
//
// Clauses A7, A33.
func TestChoose(t *testing.T) {
	top := t.TempDir()
	dir := func(name string) workspace.Dir {
		d, err := workspace.ParseDir(filepath.Join(top, strings.TrimPrefix(name, "!")))
		require.NoError(t, err)
		return d
	}
	dirs := func(names string) (all []workspace.Dir) {
		for _, name := range strings.Fields(names) {
			all = append(all, dir(name))
		}
		return all
	}
	const setting, added, left = " --dir", " /roots add", " the session's stored folder"
	const none = "(none)"
	for what, c := range map[string]struct {
		client, settings, added, stored string
		keep                            bool
		want                            []string // with the setting
	}{
		"what is declared": {client: none, settings: "b c b", added: "d c",
			want: []string{"b" + setting, "c" + setting, "d" + added}},
		"not cwd":            {client: none, settings: "cwd b", want: []string{"b" + setting}},
		"no longer what was": {client: none, stored: "a"},
		"the list of the client": {client: "b a b cwd", settings: "c", added: "d", stored: "e",
			keep: true, want: []string{"b", "a"}},
		"its empty list": {settings: "c", added: "d", stored: "e", keep: true},
		"what was": {client: none, settings: "c", added: "d", stored: "a c d", keep: true,
			want: []string{"a" + left, "c" + setting, "d" + added}},
		"nothing was": {client: none, settings: "c", keep: true},
		"declared read-only": {client: none, settings: "!b c",
			want: []string{"!b" + setting, "c" + setting}},
		"and listed":            {client: "b/x c", settings: "!b", want: []string{"!b/x", "c"}},
		"twice":                 {client: none, settings: "b !b", want: []string{"!b" + setting}},
		"read-only before":      {client: "b b/x", stored: "!b", want: []string{"!b", "!b/x"}},
		"and kept":              {client: none, stored: "!b", keep: true, want: []string{"!b" + left}},
		"and declared writable": {client: "b", settings: "b", stored: "!b", want: []string{"b"}},
		"writable in a read-only": {client: none, settings: "!b b/x",
			want: []string{"!b" + setting, "b/x" + setting}},
	} {
		t.Run("A33/"+what, func(t *testing.T) {
			var all []Declared
			for _, name := range strings.Fields(c.settings) {
				all = append(all, Declared{dir: dir(name), source: declared,
					Folder: Folder{Setting: "--dir", ReadOnly: name[0] == '!'}})
			}
			for _, d := range dirs(c.added) {
				f := Folder{Setting: "/roots add"}
				all = append(all, Declared{Folder: f, dir: d, source: confirmed})
			}
			var paths, readOnly []string
			for i, d := range dirs(c.stored) {
				if paths = append(paths, d.String()); strings.Fields(c.stored)[i][0] == '!' {
					readOnly = append(readOnly, d.String())
				}
			}
			roots, err := workspace.NewRoots(dir("cwd").String(), paths)
			require.NoError(t, err)
			had := sessionstore.Keys{Roots: roots.ReadOnlyAt(readOnly),
				Real: append(dirs("cwd"), dirs(c.stored)...)}
			asked := Requested(dir("cwd"), dirs(c.client), true)
			if c.client == none {
				asked = Requested(dir("cwd"), nil, false)
			}
			s, err := asked.Choose(all, had, c.keep)
			require.NoError(t, err)
			require.Equal(t, c.client != none, s.Listed())
			require.Equal(t, dir("cwd"), s.Cwd())
			var got []string
			for _, d := range s.Additional().All() {
				name, _ := filepath.Rel(top, d.String())
				if s.Roots().Grant(d) == workspace.ReadOnly {
					name = "!" + name
				}
				got = append(got, strings.TrimSpace(filepath.ToSlash(name)+" "+s.Setting(d)))
			}
			require.Equal(t, c.want, got)

			removed := dir("a")
			changed := s.Changed(removed, consent.ForFolder(dir("cwd"), dir("new"), ""))
			require.Equal(t, append(s.Additional().Without(removed).Strings(), dir("new").String()),
				changed.Additional().Strings())
			require.Equal(t, s.Roots().ReadOnly(), changed.Roots().ReadOnly())
		})
	}
}

// A window may spell the working directory in another way than the session. It is no additional
// folder then either.
//
// Clause A33.
func TestInOtherSpelling(t *testing.T) {
	top := t.TempDir()
	dir := func(path string) workspace.Dir {
		d, err := workspace.ParseDir(filepath.Join(top, path))
		require.NoError(t, err)
		return d
	}
	cwd, link, b := dir("cwd"), dir("link"), dir("b")
	open := Requested(cwd, []workspace.Dir{b}, true)
	again := Requested(link, []workspace.Dir{link, b}, true).In(open)
	require.Equal(t, open.Roots().String(), again.Roots().String())
	require.True(t, again.Listed())
}
