package tools

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C7.
func TestMounts(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for _, policy := range []workspace.Mounts{workspace.NoMounts, workspace.ExistingMounts,
		workspace.AnyMounts} {
		t.Run("C7/"+string(policy), func(t *testing.T) {
			top := plant(t, fileTree{
				"app/in": "fine\n", "app/before/in": "fine\n", "app/later/in": "fine\n", "out/secret": "secret\n", "out/sub/secret": "secret\n",
			})
			mountOut := func(name string) {
				point := filepath.Join(top, "app", name)
				require.NoError(t, unix.Mount(filepath.Join(top, "out"), point, "", unix.MS_BIND,
					""))
				t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
			}
			mountOut("before")
			h := serve(t, roottest.OpenWith(t, workspace.Options{Mounts: policy}, filepath.Join(top, "app")),
				Options{})
			mountOut("later")

			for name, granted := range map[string]bool{"before": policy != workspace.NoMounts,
				"later": policy == workspace.AnyMounts} {
				found := do[foundFiles](h, "find_files",
					args{"glob": name + "/**", "ignored": "include"})
				lines := do[searchResult](h, "search",
					args{"glob": name + "/**", "pattern": "secret", "ignored": "include"})
				if granted {
					require.Equal(t, "secret\n", do[fileText](h, "read_file",
						args{"path": name + "/secret"}).Content)
					require.Len(t, found.Files, 2)
					require.Len(t, lines.Files, 2)
					continue
				}
				require.Empty(t, found.Files)
				require.Empty(t, lines.Files)
				for _, path := range []string{name, name + "/", name + "/secret", name + "/sub",
					name + "/sub/secret", name + "/new"} {
					for label, call := range pathCalls {
						result, err := h.try(call(path))
						require.ErrorContains(t, err, "mounted there", "%s %s gives %s", label, path,
							result.Text)
					}
				}
				require.Empty(t, h.asked)
			}
			require.Equal(t, "secret\n", planted(t, top)["out/secret"])
			require.NotContains(t, planted(t, top), "out/new")
		})
	}
}

// A file that is mounted alone, as containers do with files of configuration, cannot be replaced.
// It stays as it is, and the error says why.
func TestMountedFile(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	top := plant(t, fileTree{"app/config": "old\n", "out/config": "mounted\n"})
	point := filepath.Join(top, "app/config")
	require.NoError(t, unix.Mount(filepath.Join(top, "out/config"), point, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
	h := serve(t, roottest.OpenWith(t, workspace.Options{Mounts: workspace.AnyMounts},
		filepath.Join(top, "app")), Options{})
	for tool, a := range map[string]args{
		"write_file": {"path": "config", "content": "new\n"},
		"edit_file":  {"path": "config", "old_text": "mounted", "new_text": "new"},
		"move_file":  {"path": "config", "to": "other"}, "delete_file": {"path": "config"},
	} {
		_, err := h.try(tool, a)
		require.ErrorIs(t, err, unix.EBUSY, tool)
		require.ErrorContains(t, err, "mounted", tool)
	}
	require.Equal(t, "mounted\n", do[fileText](h, "read_file", args{"path": "config"}).Content)
	require.Equal(t, fileTree{"config": "mounted\n"}, planted(t, filepath.Join(top, "app")))
}
