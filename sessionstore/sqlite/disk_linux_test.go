package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// TestSmallDisk uses disks of more and more pages and files, so that each operation of SQLite is
// the first that fails for lack of room.
//
// Clause S4.
func TestSmallDisk(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for _, limit := range []string{"size=%dk,nr_inodes=100", "size=4096k,nr_inodes=%d"} {
		full := 0
		for n := 1; n < 200; n += 1 + n/8 {
			options := fmt.Sprintf(limit, 4*n)
			if strings.HasSuffix(limit, "%d") {
				options = fmt.Sprintf(limit, 1+n)
			}
			if useSmallDisk(t, options) {
				full++
			}
		}
		require.Greater(t, full, 2, limit)
	}
}

// useSmallDisk uses a store on a new file system, and reports whether it became full.
func useSmallDisk(t *testing.T, options string) (full bool) {
	t.Helper()
	disk := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, options))
	defer func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) }()
	dir := filepath.Join(disk, "state")
	s := sqlite.New(sqlite.Options{Dir: dir})
	lease, err := s.Create(t.Context(),
		sessionstore.Session{ID: "one", Keys: storetest.Keys(t, "app")})
	for range 20 {
		if err != nil {
			break
		}
		err = s.Append(t.Context(), lease, storetest.Said(strings.Repeat("x", 9_000)))
	}
	if err != nil {
		require.ErrorContains(t, err, "full", options)
		require.ErrorContains(t, err, "free some space", options)
		require.ErrorContains(t, err, "remove files", options)
		trials, globErr := filepath.Glob(filepath.Join(dir, "sessions.db-trial*"))
		require.NoError(t, globErr)
		require.Empty(t, trials)
	}
	_ = s.Close()
	_ = os.RemoveAll(dir)
	return err != nil
}
