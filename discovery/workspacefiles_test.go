package discovery_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause A24.
func TestWorkspaceFiles(t *testing.T) {
	top := tree(t, map[string]string{
		"app/app.code-workspace": "{\n// mine\n\"folders\": [ {\"path\": \".\"}, {\"path\": \"../shared\", \"name\": \"s\"}, {\"path\": \"web\"}, {\"path\": \"../skills/\"},\n" +
			"{\"uri\": \"vscode-remote://x/y\"}, {\"path\": \"../a/../shared\"}, ], /* */ \"settings\": {} }",
		"app/go.work":                 "go 1.24\n\nuse .\nuse (\n\t./tools // ours\n\t../lib\n)\nuse \"../quoted dir\" // x\nreplace (\n\tuse => ../y\n)\nreplace example.com/x => ../x\n",
		"app/pnpm-workspace.yaml":     "packages:\n  - 'packages/*'\n  - ../libs/*/src\n  - '!../libs/old'\n  - \"../one\"\ncatalog:\n  a: 1\n",
		"app/package.json":            `{"name":"app","workspaces":{"packages":["packages/*","../npm/**"]}}`,
		"app/broken.code-workspace":   `{"folders": 7}`,
		"app/own.code-workspace":      `{"folders":[{"path":"."},{"path":"web/../web"}]}`,
		"app/web/deep.code-workspace": `{"folders":[{"path":"../../shared"}]}`,
		"app/x.code-workspace/a":      "a directory",
		"other/package.json":          `{"workspaces":["../more"]}`,
		"plain/package.json":          `{"name":"plain"}`,
		"open/go.work":                "use (\n../x\n",
		"quoted/go.work":              "go 1.24\nuse \"../x\n",
		"two/go.work":                 "use ../x ../y\n",
		"lists/package.json":          `{"workspaces":["../*","/absolute/*"]}`,
		"shared/a":                    "", "skills/a": "", "secret/s.code-workspace": `{"folders":[{"path":"../x"}]}`,
	})
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(top, name))
		}
		return paths
	}
	found := func(roots ...string) map[string][]string {
		files, err := scan(t, discovery.Options{}, at(roots...)...).WorkspaceFiles(t.Context())
		require.NoError(t, err)
		got := make(map[string][]string)
		for _, f := range files {
			for _, dir := range f.Folders {
				got[f.Path] = append(got[f.Path], dir.String())
			}
		}
		return got
	}
	app := filepath.Join(top, "app")
	require.Equal(t, map[string][]string{
		filepath.Join(app, "app.code-workspace"):  at("shared", "skills"),
		filepath.Join(app, "go.work"):             at("lib", "quoted dir"),
		filepath.Join(app, "pnpm-workspace.yaml"): at("libs", "one"),
		filepath.Join(app, "package.json"):        at("npm"),
	}, found("app"))
	require.Equal(t, at("skills"),
		found("app", "shared", "other")[filepath.Join(app, "app.code-workspace")],
		"without those that are roots")
	require.Empty(t, found("plain"))
	require.Equal(t, []string{top, "/absolute"},
		found("lists")[filepath.Join(top, "lists/package.json")])

	ws := openWorkspace(t, app)
	read := func(path string) (workspace.Dir, error) {
		f, err := discovery.ReadWorkspaceFile(t.Context(), ws, path)
		if err != nil {
			return workspace.Dir{}, err
		}
		return f.Folders[0], nil
	}
	for _, path := range []string{"web/deep.code-workspace",
		filepath.Join(app, "web", "deep.code-workspace")} {
		dir, err := read(path)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(top, "shared"), dir.String(), "paths start at the file")
	}
	for path, says := range map[string]string{
		"web":                              "is not a workspace file",
		"missing.code-workspace":           "no such file",
		"broken.code-workspace":            "folders is not a list",
		"../secret/s.code-workspace":       "outside",
		"../app/../secret/package.json":    "outside",
		filepath.Join(top, "x", "go.work"): "outside",
	} {
		_, err := read(path)
		require.ErrorContains(t, err, says, path)
	}
	for folder, says := range map[string]string{
		"open": "unterminated block", "quoted": "line 2", "two": "line 1: usage: use",
	} {
		_, err := discovery.ReadWorkspaceFile(t.Context(),
			openWorkspace(t, filepath.Join(top, folder)), "go.work")
		require.ErrorContains(t, err, says, folder)
	}
}

func TestWorkspaceFilesAreBounded(t *testing.T) {
	files := map[string]string{"go.work": "use ../x\n//" + strings.Repeat("x", 1<<20)}
	for i := range 100 {
		files[fmt.Sprintf("%02d.code-workspace", i)] = `{"folders":[{"path":"../x"}]}`
	}
	ws := openWorkspace(t, tree(t, files))
	c, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	found, err := c.WorkspaceFiles(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 16)
	_, err = discovery.ReadWorkspaceFile(t.Context(), ws, "go.work")
	require.ErrorContains(t, err, "the limit is 1048576")
}

func FuzzWorkspaceFile(f *testing.F) {
	f.Add("", `{"folders":[{"path":"../x"},]}`)
	f.Add("go.work", "use ../x")
	f.Add("pnpm-workspace.yaml", "packages: [../x/*]")
	f.Add("package.json", `{"workspaces":["../x"]}`)
	f.Fuzz(func(t *testing.T, name, content string) {
		if !slices.Contains([]string{"go.work", "pnpm-workspace.yaml", "package.json"}, name) {
			name = "a.code-workspace"
		}
		cwd := tree(t, map[string]string{name: content})
		file, err := discovery.ReadWorkspaceFile(t.Context(), openWorkspace(t, cwd), name)
		if err != nil {
			return
		}
		for _, dir := range file.Folders {
			rel, err := filepath.Rel(cwd, dir.String())
			require.False(t, err == nil && filepath.IsLocal(rel), dir)
		}
	})
}

// openWorkspace is open with the end of the test.
func openWorkspace(t *testing.T, roots ...string) *workspace.Workspace {
	ws := open(t, roots...)
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

// The time to read a file grows with its length, so that a file in a repository cannot keep a
// session from opening.
//
// Clause A24.
func TestWorkspaceFileWithManyFolders(t *testing.T) {
	const n = 50_000
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "use ../%x\n", i)
	}
	top := tree(t, map[string]string{"app/go.work": list.String()})
	file, err := discovery.ReadWorkspaceFile(t.Context(),
		openWorkspace(t, filepath.Join(top, "app")), "go.work")
	require.NoError(t, err)
	require.Len(t, file.Folders, n)
}
