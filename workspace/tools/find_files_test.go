package tools

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFindFiles(t *testing.T) {
	app := plant(t, fileTree{".gitignore": "*.log\nbuild/\n", "main.go": "", "x/util.go": "",
		"x/util_test.go": "", "x/y.log": "", "build/z.go": "", ".git/config": ""})
	lib := plant(t, fileTree{"lib.go": "", "x/more.go": ""})
	symlink(t, filepath.Join(lib, "lib.go"), filepath.Join(app, "link.go"))
	h := serve(t, openRoots(t, app, lib), Options{})
	find := func(a args) (names []string) {
		for _, f := range h.found("find_files", a) {
			rel, ok := strings.CutPrefix(f.Path, app+string(filepath.Separator))
			if !ok {
				rel = "lib:" + strings.TrimPrefix(rel, lib+string(filepath.Separator))
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return names
	}
	for _, c := range []struct {
		args args
		want []string
	}{
		{args{}, []string{".gitignore", "main.go", "x/util.go", "x/util_test.go", "lib:lib.go",
			"lib:x/more.go"}},
		{args{"glob": "*.go"}, []string{"main.go", "x/util.go", "x/util_test.go", "lib:lib.go",
			"lib:x/more.go"}},
		{args{"glob": "x/*.go"}, []string{"x/util.go", "x/util_test.go", "lib:x/more.go"}},
		{args{"glob": "*.go", "path": "x"}, []string{"x/util.go", "x/util_test.go"}},
		{args{"glob": "**/*_test.go", "path": app}, []string{"x/util_test.go"}},
		{args{"glob": "*.{log,go}", "path": ".", "ignored": "include"},
			[]string{"main.go", "build/z.go", "x/util.go", "x/util_test.go", "x/y.log"}},
		{args{"path": "build"}, []string{"build/z.go"}},
		{args{"path": lib, "glob": "lib.go"}, []string{"lib:lib.go"}},
		{args{"path": "link.go"}, []string{"lib:lib.go"}},
		{args{"glob": "nothing"}, nil},
		{args{"exclude": []string{"x"}}, []string{".gitignore", "main.go", "lib:lib.go"}},
		{args{"exclude": []string{"x/"}}, []string{".gitignore", "main.go", "lib:lib.go"}},
		{args{"glob": "*.go", "exclude": []string{"*_test.go", "lib.go"}},
			[]string{"main.go", "x/util.go", "lib:x/more.go"}},
		{args{"exclude": []string{"x/util*", ".*"}},
			[]string{"main.go", "lib:lib.go", "lib:x/more.go"}},
		{args{"path": "x", "exclude": []string{"x", "**/*_test.go"}}, []string{"x/util.go"}},
	} {
		require.Equal(t, c.want, find(c.args), c.args)
	}
	require.ErrorContains(t, h.refused("find_files", args{"glob": "[a"}), `invalid glob "[a"`)
	require.ErrorContains(t, h.refused("find_files", args{"exclude": []string{"x", "[a"}}),
		`invalid glob "[a"`)

	h = serve(t, openRoots(t, app, lib), Options{limits: limits{entries: 3}})
	require.Len(t, h.found("find_files", args{}), 3)
	require.Contains(t, h.said("find_files", args{}), "\n[truncated after "+
		filepath.Join(app, "x/util.go")+": the limit of 3 entries was reached. Not searched "+
		"completely: "+app+", "+lib+". Use a narrower glob, or a path.]\n")
	h = serve(t, openRoots(t, app, lib), Options{limits: limits{bytes: len(app) + 20}})
	require.Contains(t, h.said("find_files", args{}), " bytes was reached")
	h = serve(t, openRoots(t, app, lib), Options{limits: limits{time: time.Nanosecond}})
	require.Contains(t, h.said("find_files", args{}), "the limit of 0 ms was reached")
	require.Contains(t, h.said("search", args{"pattern": "x"}), "the limit of 0 ms was reached")
}

// The root is named once, and not on every line.
func TestFoundFilesNameTheirRootOnce(t *testing.T) {
	app := plant(t, fileTree{"main.go": "", "x/y/util.go": ""})
	lib := plant(t, fileTree{"lib.go": "", "app/[id]/page.go": ""})
	h := serve(t, openRoots(t, app, lib), Options{})
	require.Equal(t, "in folder "+app+":\nmain.go\n"+filepath.FromSlash("x/y/util.go")+"\nin folder "+
		lib+":\nlib.go\n"+filepath.FromSlash("app/[id]/page.go")+"\nfound 4 files, visited 4\n",
		h.said("find_files", args{"glob": "*.go"}))
	require.Equal(t, "No file matches; 4 files visited\n",
		h.said("find_files", args{"glob": "*.py"}))
	require.Contains(t, h.said("find_files", args{"glob": "app/[id]/*.go"}),
		`[[id] stands for one of these characters: write \[id\] for a name with brackets]`)
	require.Contains(t, h.said("find_files", args{"glob": `app/\[id\]/*.go`}), "page.go")
}
