package sqlite_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// filledFiles are the files of stores by their number of sessions.
var filledFiles = map[int]map[string][]byte{}

// filled returns the directory of a closed store with some sessions, which is a copy of the first
// one that has as many.
func filled(t *testing.T, sessions int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if filledFiles[sessions] == nil {
		fill(t, dir, sessions)
		filledFiles[sessions] = map[string][]byte{}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			filledFiles[sessions][e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
		}
	}
	for name, content := range filledFiles[sessions] {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir
}

// fill creates a store with some sessions and closes it.
func fill(t *testing.T, dir string, sessions int) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: dir})
	for i := range sessions {
		lease := create(t, s, fmt.Sprint("session ", i))
		for range 5 {
			number := begin(t, s, lease, say("ask"))
			require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say(strings.Repeat("x", 3000))}))
			require.NoError(t, s.EndTurn(t.Context(), lease, number))
		}
	}
	_, err := s.Fork(t.Context(), "session 0", sessionstore.NewSession{ID: "fork", Keys: rooted(t, "app")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// damage overwrites pages of a closed store.
func damage(t *testing.T, dir string, hit func(page int) bool) (damaged []byte) {
	t.Helper()
	const size = 4096
	path := filepath.Join(dir, "sessions.db")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for page := 0; page*size < len(content); page++ {
		if hit(page) {
			copy(content[page*size:], strings.Repeat("\xff", size))
		}
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return content
}

// requireUsable reads everything of a store and writes to it.
func requireUsable(t *testing.T, dir string) (sessions []string) {
	t.Helper()
	s := open(t, sqlite.Options{Dir: dir})
	sessions = ids(t, s)
	for _, id := range sessions {
		for u, err := range s.History(t.Context(), sessionstore.ID(id)) {
			require.NoError(t, err)
			require.Contains(t, u.String(), `"update"`)
		}
		lease, err := s.Activate(t.Context(), sessionstore.ID(id), sessionstore.Activation{Keys: rooted(t, "app", "lib")})
		require.NoError(t, err)
		number := begin(t, s, lease, say("again"))
		require.NoError(t, s.EndTurn(t.Context(), lease, number))
	}
	create(t, s, "after the repair")
	require.NoError(t, s.Close())
	require.Equal(t, "ok", integrity(t, dir))
	return sessions
}

// Clause S4.
func TestRepair(t *testing.T) {
	const sessions = 40
	for stride := 7; stride < 12; stride += volume.Of(2, 1) {
		t.Run(fmt.Sprintf("S4/every %dth page", stride), func(t *testing.T) {
			dir := filled(t, sessions)
			// The first pages contain the schema and the roots of tables. A page further up in the tree
			// of segments would lose most of them; none of these is one.
			before := damage(t, dir, func(page int) bool { return page > 63 && (page-3)%stride == 0 })
			report, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
			require.NoError(t, err)
			kept, err := os.ReadFile(report.Damaged)
			require.NoError(t, err)
			require.Equal(t, before, kept)
			require.Equal(t, sessions+1, report.Sessions+len(report.Lost))
			require.NotEmpty(t, append(report.Incomplete, report.Lost...))
			require.Greater(t, report.Updates, sessions*10/2)
			require.Len(t, requireUsable(t, dir), report.Sessions)
			report, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
			require.NoError(t, err)
			require.Empty(t, report, "once is enough")
		})
	}
}

// Clause S4.
func TestRepairKeepsLabels(t *testing.T) {
	dir := filled(t, 10)
	s := open(t, sqlite.Options{Dir: dir})
	create(t, s, "unused")
	require.NoError(t, s.Archive(t.Context(), "fork"))
	require.NoError(t, s.Rename(t.Context(), "fork", "chosen"))
	_, err := s.Import(t.Context(), sessionstore.Agent{Kind: "agent"}, []sessionstore.Imported{
		{ID: "theirs", StateKey: "a", State: []byte("x"), Keys: rooted(t, "app"), Meta: []byte(`{"n":1.0}`)},
	})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	damage(t, dir, func(page int) bool { return page > 64 && page%9 == 0 })
	_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
	require.NoError(t, err)
	s = open(t, sqlite.Options{Dir: dir})
	listed := func(q sessionstore.Query) map[sessionstore.ID]sessionstore.Session {
		q.Unused.Before, q.Limit = time.Now().Add(time.Hour), sessionstore.MaxPageSize
		page, err := s.List(t.Context(), q)
		require.NoError(t, err)
		found := map[sessionstore.ID]sessionstore.Session{}
		for _, session := range page.Sessions {
			found[session.ID] = session
		}
		return found
	}
	archived := listed(sessionstore.Query{Archive: sessionstore.OnlyArchived})
	require.Len(t, archived, 1)
	require.Equal(t, "chosen", archived["fork"].Title)
	require.True(t, archived["fork"].Renamed && archived["fork"].Archived)
	others := listed(sessionstore.Query{Archive: sessionstore.WithoutArchived})
	require.NotContains(t, others, sessionstore.ID("unused"))
	require.Equal(t, `{"n":1.0}`, string(others["theirs"].Meta))
	require.Contains(t, others, sessionstore.ID("session 0"))
}

// Clause S4.
func TestRepairKeepsStateKeys(t *testing.T) {
	dir := filled(t, 10)
	theirs := []sessionstore.Imported{
		{ID: "kept", StateKey: "a", State: []byte("x"), Keys: rooted(t, "app")},
		{ID: "deleted", StateKey: "b", State: []byte("y"), Keys: rooted(t, "app")},
	}
	bring := func() (sessions []string) {
		s := open(t, sqlite.Options{Dir: dir})
		_, err := s.Import(t.Context(), sessionstore.Agent{Kind: "agent"}, theirs)
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), "deleted"))
		sessions = ids(t, s)
		require.NoError(t, s.Close())
		return sessions
	}
	before := bring()
	s := open(t, sqlite.Options{Dir: dir})
	lease := create(t, s, "last")
	require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say(strings.Repeat("x", 200_000))}))
	require.NoError(t, s.Close())
	info, err := os.Stat(filepath.Join(dir, "sessions.db"))
	require.NoError(t, err)
	damage(t, dir, func(page int) bool { return page == int(info.Size()/4096)-2 }) // of the long segment
	_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
	require.NoError(t, err)
	require.ElementsMatch(t, append(before, "last"), bring(), "neither is imported again")
}

// Clause S4.
func TestRepairKeepsAgents(t *testing.T) {
	for _, lost := range []string{"agents", "sqlite_autoindex_agents_1"} {
		t.Run(lost, func(t *testing.T) {
			dir := filled(t, 2)
			db, err := sql.Open("sqlite", filepath.Join(dir, "sessions.db"))
			require.NoError(t, err)
			var root int
			row := db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = ?", lost)
			require.NoError(t, row.Scan(&root))
			require.NoError(t, db.Close())
			damage(t, dir, func(page int) bool { return page == root-1 })
			_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
			require.NoError(t, err)
			got, err := open(t, sqlite.Options{Dir: dir}).Get(t.Context(), "session 0")
			require.NoError(t, err)
			require.Equal(t, sessionstore.Agent{Kind: "explore"}, got.Agent)
		})
	}
}

// Clause S4.
func TestRepairAnyDamagedPage(t *testing.T) {
	for page := range 30 {
		dir := filled(t, 2)
		damage(t, dir, func(p int) bool { return p == page })
		_, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
		require.NoError(t, err, "page %d", page)
		requireUsable(t, dir)
	}
}

// Clause S4.
func TestRepairHealthy(t *testing.T) {
	dir := filled(t, 3)
	before := contents(t, dir)
	report, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
	require.NoError(t, err)
	require.Empty(t, report)
	require.Equal(t, before, contents(t, dir))
	_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Clause S4.
func TestRepairInUse(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows itself refuses to move a file that is open")
	}
	dir := filled(t, 2)
	s := sqlite.New(sqlite.Options{Dir: dir})
	create(t, s, "one")
	require.NoError(t, s.Close())
	cmd := process(t, "writer", dir, "w")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, bufio.NewScanner(out).Scan())
	_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.ErrorContains(t, err, fmt.Sprintf("process %d has it open", cmd.Process.Pid))
}

// Clause S4.
func TestRepairThatFails(t *testing.T) {
	dir := filled(t, 3)
	damage(t, dir, func(page int) bool { return page == 5 })
	log := filepath.Join(dir, "sessions.db-wal")
	require.NoError(t, os.WriteFile(log, []byte("the log"), 0o600))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	obstacle := filepath.Join(dir, "sessions.damaged-20260102T030405.000.db")
	require.NoError(t, os.MkdirAll(filepath.Join(obstacle, "x"), 0o700))
	before, err := os.ReadFile(filepath.Join(dir, "sessions.db"))
	require.NoError(t, err)
	_, err = sqlite.Repair(t.Context(), sqlite.Options{Dir: dir, Now: func() time.Time { return now }})
	require.ErrorAs(t, err, new(*sessionstore.UnavailableError))
	after, err := os.ReadFile(filepath.Join(dir, "sessions.db"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "the log", string(text), "it contains the last commits")
}

// killRepair kills a repair of the store in dir while it copies. It leaves copies of everything.
func killRepair(t *testing.T, dir string) {
	t.Helper()
	for len(repairCopies(t, dir)) == 0 { // it may have ended before it was killed
		cmd := process(t, "repairer", dir, "")
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 && len(repairCopies(t, dir)) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		_ = cmd.Process.Kill()
		<-ended
	}
}

// repairCopies returns the files of repairs.
func repairCopies(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "sessions.repair-*", "*.db"))
	require.NoError(t, err)
	return files
}

// Clause S10.
func TestKilledRepair(t *testing.T) {
	t.Run("S10/the next program that opens the store removes its copies", func(t *testing.T) {
		dir := filled(t, 100)
		killRepair(t, dir)
		s := open(t, sqlite.Options{Dir: dir})
		require.Len(t, ids(t, s), 101)
		require.Empty(t, repairCopies(t, dir))
	})
	t.Run("S10/the next repair removes its copies", func(t *testing.T) {
		dir := filled(t, 100)
		killRepair(t, dir)
		_, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
		require.NoError(t, err)
		require.Empty(t, repairCopies(t, dir))
	})
	t.Run("S10/erasing removes its copies", func(t *testing.T) {
		dir := filled(t, 1)
		s := open(t, sqlite.Options{Dir: dir}.WithEraseDelay(time.Millisecond))
		require.Len(t, ids(t, s), 2)
		left := filepath.Join(dir, "sessions.repair-1")
		require.NoError(t, os.Mkdir(left, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(left, "new.db"), []byte("a copy"), 0o600))
		require.NoError(t, s.Delete(t.Context(), "session 0"))
		require.Eventually(t, s.Erased, time.Minute, 10*time.Millisecond)
		require.NoDirExists(t, left)
	})
	t.Run("S10/erasing leaves a running repair alone", func(t *testing.T) {
		dir := filled(t, 1)
		s := open(t, sqlite.Options{Dir: dir}.WithEraseDelay(time.Millisecond))
		require.Len(t, ids(t, s), 2)
		running := filepath.Join(dir, "sessions.repair-1")
		require.NoError(t, os.Mkdir(running, 0o700))
		unlock, err := sqlite.LockFile(filepath.Join(dir, "sessions.lock"))
		require.NoError(t, err)
		defer unlock()
		require.NoError(t, s.Delete(t.Context(), "session 0"))
		require.Eventually(t, s.Erased, time.Minute, 10*time.Millisecond)
		require.DirExists(t, running)
	})
}
