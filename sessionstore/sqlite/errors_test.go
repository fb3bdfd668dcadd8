package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause S5.
func TestFilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has access lists instead of modes; the directory's is inherited")
	}
	dir := filepath.Join(t.TempDir(), "state", "acp-agent")
	s := open(t, sqlite.Options{Dir: dir})
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "an unused store creates nothing")
	storetest.Create(t, s, "one")
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), d)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
	require.Equal(t, []string{"sessions.db", "sessions.db-shm", "sessions.db-wal"}, names)
}

// requireUnavailable checks that an error names the file and says what to do.
func requireUnavailable(t *testing.T, err error, path, hint string) {
	t.Helper()
	var unavailable *sessionstore.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, path, unavailable.Medium)
	require.Contains(t, unavailable.Hint, hint)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, hint)
}

func list(t *testing.T, s *sqlite.Store) error {
	t.Helper()
	_, err := s.List(t.Context(), sessionstore.Query{})
	return err
}

// Clause S4.
func TestLoosePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	for name, use := range map[string]func(*testing.T, sqlite.Options){
		"open": func(t *testing.T, o sqlite.Options) { require.Len(t, ids(t, open(t, o)), 2) },
		"repair": func(t *testing.T, o sqlite.Options) {
			_, err := sqlite.Repair(t.Context(), o, nil)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t, 1)
			files := []string{"sessions.db", "sessions.damaged-1.db"}
			require.NoError(t, os.WriteFile(filepath.Join(dir, files[1]), nil, 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644))
			for file, mode := range map[string]os.FileMode{files[0]: 0o640, files[1]: 0o604, "notes": 0o644} {
				require.NoError(t, os.Chmod(filepath.Join(dir, file), mode))
			}
			log := &logtest.Text{}
			o := sqlite.Options{Dir: dir, Logger: log.Logger(slog.LevelWarn)}
			use(t, o)
			for _, file := range files {
				requireMode(t, filepath.Join(dir, file), 0o600)
			}
			requireMode(t, filepath.Join(dir, "notes"), 0o644)
			require.Equal(t, 2, log.Count("other users could read"))
			use(t, o)
			require.Equal(t, 2, log.Count("other users could read"), "once")
		})
	}
}

func requireMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, want, info.Mode().Perm(), path)
}

// Clause S4.
func TestUnusableFile(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string) // changes the file of a closed store
		hint  string
	}{
		"not a database": {func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600))
		}, "acp-agent sessions repair"},
		"all but the beginning is damaged": {func(t *testing.T, path string) {
			damage(t, filepath.Dir(path), func(part int) bool { return part > 0 })
		}, "acp-agent sessions repair"},
		"the database of another program": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "CREATE TABLE music (title TEXT)")
			require.NoError(t, err)
			require.NoError(t, db.Close())
		}, "move it away"},
	} {
		t.Run("S4/"+name, func(t *testing.T) {
			dir := filled(t, 10)
			path := filepath.Join(dir, "sessions.db")
			c.spoil(t, path)
			before := dirtest.Read(t, path)
			s := open(t, sqlite.Options{Dir: dir})
			for range 2 {
				requireUnavailable(t, list(t, s), path, c.hint)
			}
			_, err := s.Get(t.Context(), "session 0")
			requireUnavailable(t, err, path, c.hint)
			require.Equal(t, before, dirtest.Read(t, path))

			require.NoError(t, os.Remove(path))
			storetest.Create(t, s, "one") // the same store works once the cause is gone
		})
	}
}

// Clause S4.
func TestDirectoryNotCreatable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dir := filepath.Join(file, "state")
	requireUnavailable(t, list(t, open(t, sqlite.Options{Dir: dir})), dir, "")
}

// A check changes nothing, wherever the store's directory or its parent is.
func TestCheckDirChangesNothing(t *testing.T) {
	parent := t.TempDir()
	before, err := os.Stat(parent)
	require.NoError(t, err)
	for _, dir := range []string{parent, filepath.Join(parent, "state", "acp-agent")} {
		require.NoError(t, open(t, sqlite.Options{Dir: dir}).CheckDir())
	}
	after, err := os.Stat(parent)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requireUnavailable(t, open(t, sqlite.Options{Dir: file}).CheckDir(), file, "choose another")
}

// TestFullDiskAtAnyWrite gives a store room for more and more writes. When the disk is full the
// error names the file and says what to do, nothing that was acknowledged is lost, and the store
// works again once there is room.
//
// Clause S4.
func TestFullDiskAtAnyWrite(t *testing.T) {
	for _, journal := range []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback} {
		t.Run("S4/"+string(journal), func(t *testing.T) {
			full := true
			for room := int64(0); full; room += 1 + room/int64(volume.Of(3, 5)) {
				full = useFullDisk(t, journal, room)
			}
		})
	}
}

// useFullDisk uses a new store on a disk with room for some writes, and reports whether it became
// full.
func useFullDisk(t *testing.T, journal sqlite.Journal, room int64) (full bool) {
	t.Helper()
	dir := dirtest.New(t)
	r, stop := record(t, dir)
	defer stop()
	r.room.Store(room)
	s := sqlite.New(sqlite.Options{Dir: dir}.WithJournal(journal))
	lease, err := s.Create(t.Context(),
		sessionstore.Session{ID: "one", Keys: storetest.Keys(t, "app")})
	full = isFull(t, err, dir)
	if full {
		r.room.Store(-1)
		lease = storetest.Create(t, s, "one")
		r.room.Store(0)
	}
	words := 0
	for n := range 20 {
		err := s.Append(t.Context(), lease,
			storetest.Said(fmt.Sprint(n)+strings.Repeat("x", 9_000)))
		if isFull(t, err, dir) {
			full = true
			break
		}
		words++
	}
	if r.room.Store(0); full {
		require.True(t, isFull(t, s.Ping(t.Context()), dir), "nothing can be written")
	}
	r.room.Store(-1)
	require.NoError(t, s.Ping(t.Context()))
	require.NoError(t, s.Append(t.Context(), lease, storetest.Said("there is room again")))
	require.NoError(t, s.Close())

	s = sqlite.New(sqlite.Options{Dir: dir})
	found := 0
	for _, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, words+1, found, "with room for %d writes", room)
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.NoError(t, s.Close())
	require.Equal(t, "ok", integrity(t, dir))
	return full
}

// isFull reports whether err is the error of a full disk. It must be that or nil.
func isFull(t *testing.T, err error, dir string) bool {
	t.Helper()
	if err == nil {
		return false
	}
	var unavailable *sessionstore.UnavailableError
	require.True(t, errors.As(err, &unavailable), "%v", err)
	requireUnavailable(t, err, filepath.Join(dir, "sessions.db"), "free some space")
	return true
}
