package tools

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirectoryTree(t *testing.T) {
	app := plant(t, fileTree{
		".gitignore": "*.log\n", "main.go": "", "a/b/c/d/deep.go": "", "a/b/c/deep.go": "", "a/b/x": "", "a/z": "", "b/c/y": "", "x.log": "",
	})
	lib := plant(t, fileTree{"lib.go": "", "a/x": ""})
	symlink(t, lib, filepath.Join(app, "link"))
	h := serve(t, openRoots(t, app, lib), Options{})
	tree := func(a args) string { return h.said("directory_tree", a) }
	require.Equal(t, app+`/
  .gitignore
  main.go
  a/
    z
    b/
      x
      c/ (2 files)
  b/
    c/
      y
`+lib+`/
  lib.go
  a/
    x
9 files
[left out: 1 that git ignores]
`, tree(args{}))
	require.Equal(t, app+"/\n  .gitignore\n  main.go\n  a/ (4 files)\n  b/ (1 file)\n7 files\n"+
		"[left out: 1 that git ignores]\n",
		tree(args{"path": ".", "depth": 1}))
	require.Equal(t, filepath.Join(app, "a/b")+"/\n  x\n  c/ (2 files)\n3 files\n",
		tree(args{"path": "a/b", "depth": 1}))
	require.Equal(t, filepath.Join(app, "a")+"/\n  z\n  b/\n    x\n2 files\n",
		tree(args{"path": "a", "exclude": []string{"c"}}))
	require.Equal(t, lib+"/\n  lib.go\n  a/ (1 file)\n2 files\n",
		tree(args{"path": "link", "depth": 1}))
	require.Contains(t, tree(args{"ignored": "include"}), "x.log")
	require.ErrorIs(t, h.refused("directory_tree", args{"path": "main.go"}), syscall.ENOTDIR)

	for limit, of := range map[string]limits{"4 entries": {entries: 4},
		fmt.Sprint(len(app)+30, " bytes"): {bytes: len(app) + 30}} {
		cut := serve(t, openRoots(t, app), Options{limits: of}).said("directory_tree", args{})
		require.Contains(t, cut, app+"/\n  .gitignore\n  main.go\n")
		require.Contains(t, cut, "the limit of "+limit+" was reached. Not searched completely: "+app)
	}
}
