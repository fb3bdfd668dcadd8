package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// owners are where each way says that path is: a file, or with dir a directory.
func owners(t *testing.T, ws *workspace.Workspace, path string, dir bool) map[string]workspace.Ref {
	t.Helper()
	refs := map[string]workspace.Ref{}
	note := func(way string, ref workspace.Ref, err error) {
		require.NoError(t, err, "%s %s", way, path)
		refs[way] = ref
	}
	info, err := ws.Stat(path)
	note("Stat", info.Ref(), err)
	info, err = ws.Lstat(path)
	note("Lstat", info.Ref(), err)
	fsInfo, err := ws.Fs().Stat(path)
	require.NoError(t, err)
	note("Fs.Stat", fsInfo.(workspace.Info).Ref(), nil)
	above, err := ws.OpenDir(filepath.Dir(path))
	require.NoError(t, err)
	defer above.Close()
	info, err = above.Lstat(filepath.Base(path))
	note("Directory.Lstat", info.Ref(), err)
	if dir {
		d, err := ws.OpenDir(path)
		require.NoError(t, err)
		defer d.Close()
		note("OpenDir", d.Ref(), nil)
		d, err = above.OpenDir(filepath.Base(path))
		require.NoError(t, err)
		defer d.Close()
		note("Directory.OpenDir", d.Ref(), nil)
	} else {
		f, err := ws.Open(path)
		require.NoError(t, err)
		defer f.Close()
		note("Open", f.Ref(), nil)
		f, err = above.Open(filepath.Base(path))
		require.NoError(t, err)
		defer f.Close()
		note("Directory.Open", f.Ref(), nil)
		ref, err := ws.WriteTarget(path)
		note("WriteTarget", ref, err)
		ref, err = ws.WriteFile(t.Context(), path, []byte("again"), workspace.WriteOptions{})
		note("WriteFile", ref, err)
	}
	start := filepath.Dir(path)
	require.NoError(t, ws.Walk(t.Context(), start, func(v workspace.Visit) error {
		if v.Ref().Real() == path {
			refs["Walk"] = v.Ref()
		}
		return v.Err
	}))
	require.NoError(t, ws.Scan(t.Context(), start, workspace.ScanOptions{}, func(f *workspace.Folder) func() error {
		return func() error {
			for _, e := range f.Entries {
				if f.Ref().Real() == start && e.Name == filepath.Base(path) {
					refs["Scan"] = f.RefOf(e)
				}
			}
			return f.Err
		}
	}))
	return refs
}

// A23: of nested roots the longest owns a path, whichever way leads there, and in whatever order they were given.
func TestA23_TheLongestRootOwnsAPathByEveryWay(t *testing.T) {
	top := realDir(t)
	outer, middle, inner := filepath.Join(top, "o"), filepath.Join(top, "o/m"), filepath.Join(top, "o/m/x/i")
	for _, file := range []string{"o/f", "o/n/f", "o/m/f", "o/m/x/f", "o/m/x/i/f", "o/m/x/i/d/f", "o/m-twin/f"} {
		write(t, filepath.Join(top, file), file)
	}
	for _, roots := range [][]string{
		{outer, middle, inner}, {inner, middle, outer}, {middle, outer, inner}, {inner, outer, middle}, {outer, outer + "/./m", inner + "//"},
	} {
		ws := open(t, roots[0], roots[1:]...)
		for path, want := range map[string]struct {
			owner string
			rel   string
			dir   bool
		}{
			"o/f":         {owner: outer, rel: "f"},
			"o/n/f":       {owner: outer, rel: "n/f"},
			"o/n":         {owner: outer, rel: "n", dir: true},
			"o/m-twin/f":  {owner: outer, rel: "m-twin/f"},
			"o/m":         {owner: middle, rel: ".", dir: true},
			"o/m/f":       {owner: middle, rel: "f"},
			"o/m/x":       {owner: middle, rel: "x", dir: true},
			"o/m/x/i":     {owner: inner, rel: ".", dir: true},
			"o/m/x/i/f":   {owner: inner, rel: "f"},
			"o/m/x/i/d":   {owner: inner, rel: "d", dir: true},
			"o/m/x/i/d/f": {owner: inner, rel: "d/f"},
		} {
			for way, ref := range owners(t, ws, filepath.Join(top, path), want.dir) {
				require.Equal(t, want.owner, ref.Root().Dir.String(), "%s %s of %v", way, path, roots)
				require.Equal(t, want.rel, ref.Rel(), "%s %s of %v", way, path, roots)
			}
		}
	}
}
