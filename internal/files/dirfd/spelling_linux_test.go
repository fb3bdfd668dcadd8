package dirfd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
)

// All spellings that a disk takes for one directory have one real path, the one that it lists.
func TestRealPathIsAsListed(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	top := dirtest.New(t)
	disk, plain := filepath.Join(top, "Disk"), filepath.Join(top, "plain")
	require.NoError(t, os.Mkdir(disk, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(plain, "App"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(plain, "app"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(plain, "caf\u00e9"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(plain, "cafe\u0301"), 0o700))
	again := filepath.Join(plain, "App")
	require.NoError(t, unix.Mount(filepath.Join(plain, "app"), again, "", unix.MS_BIND, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(again, unix.MNT_DETACH)) })
	fusetest.Mount(t, disk, "App/caf\u00e9/1", "zwei/\u00dcnn\u0069", "\u6f22/\u304c")
	for spelled, want := range map[string]string{
		"Disk":                     "Disk",
		"Disk/App":                 "Disk/App",
		"Disk/APP":                 "Disk/App",
		"Disk/app/CAFE\u0301/1":    "Disk/App/caf\u00e9/1",
		"Disk/ZWEI/u\u0308nni":     "Disk/zwei/\u00dcnni",
		"Disk/\u6f22/\u304b\u3099": "Disk/\u6f22/\u304c",
		"plain/app":                "plain/app",
		"plain/App":                "plain/App", // both are listed
		"plain/cafe\u0301":         "plain/cafe\u0301",
		"plain/caf\u00e9":          "plain/caf\u00e9",
	} {
		dir, err := dirfd.Open(filepath.Join(top, spelled))
		require.NoError(t, err, "%q", spelled)
		real, err := dir.RealPath(filepath.Join(top, spelled))
		require.NoError(t, dir.Close())
		require.NoError(t, err, "%q", spelled)
		require.Equal(t, filepath.Join(top, want), real, "%q", spelled)
	}
}
