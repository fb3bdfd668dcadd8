package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// lookAt looks at name in d, as if everything had been there for long.
func lookAt(t *testing.T, d *workspace.Directory, name string) workspace.Look {
	t.Helper()
	info, err := d.Lstat(name)
	if name == "." {
		info, err = d.Stat()
	}
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return workspace.Look{}
	}
	return workspace.LookOf(info.FileInfo, time.Now().Add(time.Hour))
}

func TestC8_ALookTellsFilesApart(t *testing.T) {
	top := realDir(t)
	path := filepath.Join(top, "f")
	d := openTop(t, open(t, top))
	hourAgo := time.Now().Add(-time.Hour)
	put := func(text string) workspace.Look {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		require.NoError(t, os.Chtimes(path, hourAgo, hourAgo))
		return lookAt(t, d, "f")
	}
	require.Equal(t, workspace.Look{}, lookAt(t, d, "f"))
	require.True(t, workspace.Look{}.Still(lookAt(t, d, "f")), "there is nothing, still")
	first := put("one")
	again := lookAt(t, d, "f")
	require.True(t, first.Still(again))
	require.False(t, first.Still(workspace.Look{}), "it is gone")
	require.False(t, workspace.Look{}.Still(first), "it came")
	require.False(t, first.Still(put("more")), "it has another size")
	require.NoError(t, os.Rename(path, path+".old"))
	require.False(t, again.Still(put("one")), "it is another file")

	info, err := os.Lstat(path)
	require.NoError(t, err)
	young := workspace.LookOf(info, info.ModTime().Add(time.Second))
	require.False(t, young.Still(young), "it may have been changed twice within a tick of the clock")
}

// seenTree is a directory d with a file, a link and a directory with a file, and what it looks like.
func seenTree(t *testing.T) (top string, d *workspace.Directory, s *workspace.Seen) {
	top = realDir(t)
	write(t, filepath.Join(top, "root/d/f"), "of d")
	write(t, filepath.Join(top, "root/d/below/f"), "of below")
	write(t, filepath.Join(top, "root/d/unlisted/f"), "of unlisted")
	write(t, filepath.Join(top, "root/d/empty/other"), "")
	write(t, filepath.Join(top, "root/d/names/other"), "")
	link(t, "f", filepath.Join(top, "root/d/linked"))
	hourAgo := time.Now().Add(-time.Hour)
	for _, name := range []string{"f", "below/f", "below", "unlisted/f", "unlisted", "empty", "names", "."} {
		require.NoError(t, os.Chtimes(filepath.Join(top, "root/d", name), hourAgo, hourAgo))
	}
	ws := open(t, filepath.Join(top, "root"))
	d, err := ws.OpenDir("d")
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	entries := func(d *workspace.Directory, names ...string) (list []workspace.SeenEntry) {
		for _, name := range names {
			list = append(list, workspace.SeenEntry{Name: name, Look: lookAt(t, d, name)})
		}
		return list
	}
	within := func(name string, listed bool, names ...string) *workspace.Seen {
		child, err := d.OpenDir(name)
		require.NoError(t, err)
		defer child.Close()
		return &workspace.Seen{Name: name, Look: lookAt(t, d, name), Listed: listed, Entries: entries(child, names...)}
	}
	return top, d, &workspace.Seen{
		Look: lookAt(t, d, "."), Listed: true, Entries: entries(d, "f", "linked", "missing"),
		Below: []*workspace.Seen{within("below", true, "f"), within("unlisted", false, "f", "g"), within("empty", false, "g"), within("names", true)},
	}
}

func TestC8_ADirectoryShowsWhatItDid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, d string)
		same   bool
	}{
		"nothing":                        {func(*testing.T, string) {}, true},
		"another name":                   {func(t *testing.T, d string) { write(t, d+"/new", "") }, false},
		"a name that was missing":        {func(t *testing.T, d string) { write(t, d+"/missing", "") }, false},
		"a file":                         {func(t *testing.T, d string) { write(t, d+"/f", "changed") }, false},
		"a file below":                   {func(t *testing.T, d string) { write(t, d+"/below/f", "changed") }, false},
		"another name below":             {func(t *testing.T, d string) { write(t, d+"/below/g", "") }, false},
		"what does not matter":           {func(t *testing.T, d string) { write(t, d+"/unlisted/h", ""); write(t, d+"/empty/h", "") }, true},
		"what is missing where it does":  {func(t *testing.T, d string) { write(t, d+"/unlisted/g", "") }, false},
		"the first that matters":         {func(t *testing.T, d string) { write(t, d+"/empty/g", "") }, false},
		"a name where only names do":     {func(t *testing.T, d string) { write(t, d+"/names/g", "") }, false},
		"a file where names do not":      {func(t *testing.T, d string) { write(t, d+"/unlisted/f", "changed") }, false},
		"a link that leads to the same":  {func(t *testing.T, d string) { replaceLink(t, "./f", d+"/linked") }, false},
		"another directory like it":      {func(t *testing.T, d string) { replaceByCopy(t, d+"/unlisted") }, false},
		"a link to where a directory is": {func(t *testing.T, d string) { replaceByLink(t, d+"/unlisted") }, false},
		"a directory that went":          {func(t *testing.T, d string) { require.NoError(t, os.RemoveAll(d+"/empty")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			top, d, s := seenTree(t)
			require.True(t, d.Shows(s))
			test.change(t, filepath.Join(top, "root/d"))
			require.Equal(t, test.same, d.Shows(s))
		})
	}
}

// What took the place of a directory is not looked into, even if it looks the same: not outside of the roots either.
func TestC5_ShowsLooksIntoNothingButWhatWasSeen(t *testing.T) {
	top, d, s := seenTree(t)
	parent := &workspace.Seen{Look: lookAt(t, d, "."), Below: []*workspace.Seen{s.Below[1]}}
	require.True(t, d.Shows(parent))
	outside := filepath.Join(top, "outside")
	require.NoError(t, os.Rename(filepath.Join(top, "root/d/unlisted"), outside))
	link(t, outside, filepath.Join(top, "root/d/unlisted"))
	require.False(t, d.Shows(parent), "the very same directory, by a link")
	for _, name := range []string{"", ".", "..", "../d/f", "below/f", "/", "below/../f"} {
		require.False(t, d.Shows(&workspace.Seen{Look: lookAt(t, d, "."), Below: []*workspace.Seen{{Name: name}}}), name)
		require.False(t, d.Shows(&workspace.Seen{Look: lookAt(t, d, "."), Entries: []workspace.SeenEntry{{Name: name}}}), name)
	}
	require.NoError(t, d.Close())
	require.False(t, d.Shows(parent), "it is closed")
}

func replaceLink(t *testing.T, target, path string) {
	require.NoError(t, os.Remove(path))
	link(t, target, path)
}

func replaceByCopy(t *testing.T, path string) {
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.Mkdir(path, 0o755))
	require.NoError(t, os.Link(path+".old/f", path+"/f"))
}

func replaceByLink(t *testing.T, path string) {
	require.NoError(t, os.Rename(path, path+".old"))
	link(t, filepath.Base(path)+".old", path)
}
