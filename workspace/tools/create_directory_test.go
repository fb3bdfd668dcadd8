package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCreateDirectory(t *testing.T) {
	app, lib := plant(t, fileTree{"a": "x\n"}), plant(t, fileTree{"d/b": "x\n"})
	symlink(t, filepath.Join(lib, "d"), filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	require.Equal(t, location{filepath.Join(lib, "d/new"), lib}.String()+" was created\n",
		h.said("create_directory", args{"path": "link/new"}))
	require.DirExists(t, filepath.Join(lib, "d/new"))
	require.Equal(t, "create directory "+filepath.Join(lib, "d/new"), h.asked[0].String())
	require.Empty(t, h.asked[0].Diff())

	for _, path := range []string{"a", "link", "link/new", "."} {
		require.ErrorIs(t, h.refused("create_directory", args{"path": path}), fs.ErrExist, path)
	}
	for _, path := range []string{"no/../new", "a/new"} {
		h.refused("create_directory", args{"path": path})
	}
	require.Len(t, h.asked, 1, "nothing is asked about what cannot be done")

	said := h.said("create_directory", args{"path": "one/two/three/"})
	above := filepath.Join(app, "one") + ", " + filepath.Join(app, "one/two")
	require.Contains(t, said, "three (folder "+app+") was created\nalso created: "+above)
	require.DirExists(t, filepath.Join(app, "one/two/three"))
	require.Len(t, h.asked, 2, "there is one question")
	require.Equal(t, "create directory "+filepath.Join(app, "one/two/three")+
		" and its directories "+above, h.asked[1].String())
}

// What somebody else has put in the place of a directory that was created for a change stays when
// the change fails.
func TestReplacedParentsStay(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
		"link":      func(path string) error { return os.Symlink("b", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"content":   func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			top := plant(t, fileTree{"b": ""})
			s := serve(t, openRoots(t, top), Options{}).service()
			c, err := s.planDirectory(t.Context(), pathInput{"one/two/three"})
			require.NoError(t, err)
			made, err := s.makeParents(c)
			require.NoError(t, err)
			two := filepath.Join(top, "one/two")
			require.NoError(t, os.Rename(two, filepath.Join(top, "kept"))) // so its number is not reused
			require.NoError(t, replace(two))
			before := planted(t, top)
			s.removeMade(made)
			require.Equal(t, before, planted(t, top))
			_, err = os.Lstat(two)
			require.NoError(t, err)
		})
	}
	top := plant(t, fileTree{"b": ""})
	s := serve(t, openRoots(t, top), Options{}).service()
	c, err := s.planDirectory(t.Context(), pathInput{"one/two/three"})
	require.NoError(t, err)
	made, err := s.makeParents(c)
	require.NoError(t, err)
	s.removeMade(made)
	require.NoDirExists(t, filepath.Join(top, "one"))
}
