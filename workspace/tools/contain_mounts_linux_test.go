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
	require.Equal(t, "mounted\n", h.read(args{"path": "config"}).Content)
	require.Equal(t, fileTree{"config": "mounted\n"}, planted(t, filepath.Join(top, "app")))
}
