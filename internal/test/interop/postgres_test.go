package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// startOn starts the program with the database at an address.
func startOn(t *testing.T, address string, args ...string) *agent {
	t.Helper()
	stderr := &logtest.Text{}
	p, err := program.Start(program.Options{
		Command: append([]string{program.Path(), "--state-dir", t.TempDir()}, args...),
		Env:     append(proctest.Env("scripted"), "ACP_AGENT_STORE="+address, "GORACE=atexit_sleep_ms=0"),
		Stderr:  stderr,
	})
	require.NoError(t, err)
	a := &agent{Process: p, t: t, stderr: stderr}
	t.Cleanup(a.leave)
	return a.initialize()
}

// Three programs share a database, and one of them is killed at a random point, again and again.
// Its sessions are then opened by another one, which has everything that was acknowledged. Nothing
// fails, and at the end nothing is lost.
//
// Clauses S1, S2, S3, N3.
func TestKillsOnOneDatabase(t *testing.T) {
	t.Parallel()
	const programs = 3
	address := database.Address(t)
	kills := volume.Of(4, 500)
	dirs := []string{folder(t), folder(t), folder(t), folder(t)}
	m := &memory{sessions: map[string]*remembered{}}
	random := rand.New(rand.NewPCG(7, 8))
	var agents [programs]*agent
	var mine [programs][][]string
	for i := range agents {
		agents[i], mine[i] = startOn(t, address), make([][]string, 2)
	}
	for kill := range kills {
		victim := random.IntN(programs)
		var finish [programs]func() [][]string
		for i, a := range agents {
			steps := 5 + random.IntN(20)
			if i == victim {
				steps = 1 << 20
			}
			finish[i] = lanes(t, a.Process, m, dirs, uint64(kill*programs+i), mine[i], steps)
		}
		killed := agents[victim]
		from, target := killed.Count(), random.IntN(60)
		_, _, _ = killed.Await(within(t), from+target, func(rawrpc.Message) bool { return true })
		killed.kill()
		// The others are still running.
		heir := (victim + 1) % programs
		mine[victim] = finish[victim]()
		for _, ids := range mine[victim] {
			for _, id := range ids[max(0, len(ids)-3):] {
				m.inherit(t, agents[heir], id, dirs)
			}
		}
		for i := range finish {
			if i != victim {
				mine[i] = finish[i]()
			}
		}
		if t.Failed() {
			return
		}
		mine[victim], mine[heir] = mine[heir], mine[victim]
		agents[victim] = startOn(t, address)
		if kill%10 == 9 || kill == kills-1 {
			m.check(t, startOn(t, address), true)
		}
		for i := range mine {
			for j := range mine[i] {
				mine[i][j] = slices.DeleteFunc(mine[i][j], func(id string) bool { return m.of(id) == nil })
			}
		}
		m.report(t, kill+1, kills)
	}
	require.Zero(t, database.Deadlocks(t))
}

// inherit opens a session of a program that was killed, and finds what was acknowledged.
func (m *memory) inherit(t *testing.T, a *agent, id string, dirs []string) {
	t.Helper()
	r := m.of(id)
	if r.deleting && !a.opens(id, r) {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.sessions, id)
		return
	}
	r.roots = append(r.roots, rootsText(dirs[0], nil))
	a.requireWords(id, listed{Cwd: dirs[0], AdditionalDirectories: []string{}}, r.words)
	r.roots = []string{rootsText(dirs[0], nil)}
}

// A program that has a session open learns that another one has opened or deleted it at the next
// prompt, which has no effect.
//
// Clause S3.
func TestLossIsNoticedAtTheNextPrompt(t *testing.T) {
	t.Parallel()
	address := database.Address(t)
	here, there := startOn(t, address), startOn(t, address)
	dir := folder(t)
	taken, deleted, kept := here.open(dir), here.open(dir), here.open(dir)
	for _, id := range []string{taken, deleted} { // after a turn, nothing is left to be written
		require.Equal(t, "end_turn", here.prompt(id, "/roots"))
	}
	there.call("session/load", map[string]any{"sessionId": taken, "cwd": dir, "mcpServers": []any{}}, nil)
	there.call("session/delete", sessionParams(deleted), nil)
	for id, code := range map[string]int{taken: invalidRequest, deleted: notFound} {
		m := here.try("session/prompt", promptParams(id, "hello"))
		require.NotNil(t, m.Error)
		require.Equal(t, code, m.Error.Code)
	}
	require.Equal(t, "end_turn", here.prompt(kept, "/roots"))
	require.Equal(t, "end_turn", there.prompt(taken, "/roots"))
}

// sessions copy is killed again and again, and repeated until it has copied everything: histories
// and owners are as before, and what was used later in the other store stays. What was deleted
// before is remembered. A session that was deleted in one of the stores afterwards is in both, or
// still in the other.
//
// Clauses S1, N1.
func TestKillsOfSessionsCopy(t *testing.T) {
	t.Parallel()
	address := database.Address(t)
	file := t.TempDir()
	source := sqlite.New(sqlite.Options{Dir: file})
	cwd, err := workspace.ParseDir(folder(t))
	require.NoError(t, err)
	keys := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}
	text := func(word string) []sessionstore.Update {
		u, err := sessionstore.ParseUpdate([]byte(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + word + `"}}}`))
		require.NoError(t, err)
		return []sessionstore.Update{u}
	}
	owners := []string{"", "ana", "bob"}
	const each = 30
	fill := func(s sessionstore.Store, owner string, n int) {
		lease, err := s.Create(t.Context(), sessionstore.Session{ID: sessionstore.ID(fmt.Sprint(n)),
			Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys, Title: owner})
		require.NoError(t, err)
		turn, err := s.BeginTurn(t.Context(), lease, sessionstore.Turn{})
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, s.Append(t.Context(), lease, text(fmt.Sprint(owner, n, i))))
		}
		require.NoError(t, s.EndTurn(t.Context(), lease, turn))
	}
	contents := func(s sessionstore.Shared) (all []string) {
		found, err := s.Owners(t.Context())
		require.NoError(t, err)
		require.Equal(t, owners, found)
		for _, owner := range owners {
			for n := range each {
				id := sessionstore.ID(fmt.Sprint(n))
				one, err := s.For(owner).Get(t.Context(), id)
				require.NoError(t, err)
				one.Generation = 0
				line := fmt.Sprintf("%+v", one)
				for u, err := range s.For(owner).History(t.Context(), id) {
					require.NoError(t, err)
					line += string(u.Raw)
				}
				all = append(all, line)
			}
			deleted, err := s.For(owner).Deleted(t.Context())
			require.NoError(t, err)
			require.Len(t, deleted[sessionstore.Agent{Kind: "explore"}], 1)
			all = append(all, fmt.Sprint(deleted))
		}
		return all
	}
	for _, owner := range owners {
		for n := range each {
			fill(source.For(owner), owner, n)
		}
		_, err := source.For(owner).Create(t.Context(), sessionstore.Session{ID: "deleted",
			Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys, StateKey: "key " + owner})
		require.NoError(t, err)
		require.NoError(t, source.For(owner).Delete(t.Context(), "deleted"))
	}
	want := contents(source)
	require.NoError(t, source.Close())

	open := func(name string) sessionstore.Shared {
		if name == address {
			s, err := postgres.New(postgres.Options{Address: address})
			require.NoError(t, err)
			return s
		}
		return sqlite.New(sqlite.Options{Dir: name})
	}
	copied := func(s sessionstore.Shared) (n int) {
		for _, owner := range owners {
			page, err := s.For(owner).List(t.Context(), sessionstore.Query{Limit: sessionstore.MaxPageSize})
			require.NoError(t, err)
			n += len(page.Sessions)
		}
		return n
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, way := range [][2]string{{file, address}, {address, other}} {
		cmd := func() *exec.Cmd {
			return exec.Command(program.Path(), "sessions", "copy", "--from", way[0], "--to", way[1])
		}
		seen := open(way[1])
		for kill := range 4 {
			c := cmd()
			require.NoError(t, c.Start())
			require.Eventually(t, func() bool { return copied(seen) > 20*kill }, patience, time.Millisecond)
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		require.NoError(t, seen.Close())
		out, err := cmd().CombinedOutput()
		require.NoError(t, err, "%s", out)
		from, to := open(way[0]), open(way[1])
		require.NoError(t, to.For("ana").Delete(t.Context(), "0"))
		if way[0] == file {
			require.NoError(t, from.For("bob").Delete(t.Context(), "0"))
		}
		require.NoError(t, errors.Join(from.Close(), to.Close()))
		out, err = cmd().CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "copied 1 session; ")
	}
	for _, name := range []string{address, other} {
		s := open(name)
		require.Equal(t, want, contents(s))
		require.NoError(t, s.Close())
	}
}

// awaitStored waits until an update with text is in a session's history.
func awaitStored(t *testing.T, address, id, text string) {
	t.Helper()
	s, err := postgres.New(postgres.Options{Address: address})
	require.NoError(t, err)
	defer s.Close()
	owners, err := s.Owners(t.Context())
	require.NoError(t, err)
	require.Len(t, owners, 1)
	require.Eventually(t, func() bool {
		for u, err := range s.For(owners[0]).History(t.Context(), sessionstore.ID(id)) {
			if err == nil && strings.Contains(string(u.Raw), text) {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
}

// The database stops during a turn and comes back. Requests fail meanwhile and say why, and
// everything that was acknowledged is there.
//
// Clauses S1, S4.
func TestDatabaseIsLostDuringATurn(t *testing.T) {
	t.Parallel()
	var database pgtest.Server
	t.Cleanup(database.Stop)
	address := database.Address(t)
	a := startOn(t, address, behind()...)
	cwd := folder(t)
	id := a.open(cwd)
	require.Equal(t, "end_turn", a.prompt(id, "say before"))

	from := a.Count()
	a.send(rawrpc.Request(900, "session/prompt", promptParams(id, "wait")))
	a.await(from, func(m rawrpc.Message) bool { return strings.Contains(string(m.Params), "waiting ") })
	awaitStored(t, address, id, "waiting ") // or storing it would fail and end the turn
	database.Suspend()
	unavailable := func(m rawrpc.Message) {
		t.Helper()
		require.NotNil(t, m.Error)
		require.Contains(t, string(m.Error.Data), "store_unavailable")
		require.Contains(t, m.Error.Message, "check that the database runs")
	}
	a.send(rawrpc.Notification("session/cancel", sessionParams(id)))
	end, _ := a.await(from, func(m rawrpc.Message) bool { return string(m.ID) == "900" })
	require.Contains(t, string(end.Result), "cancelled", end.Raw)
	unavailable(a.try("session/prompt", promptParams(id, "say meanwhile")))
	unavailable(a.try("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}}))
	unavailable(a.try("session/list", map[string]any{}))
	database.Resume(t)

	require.Equal(t, "end_turn", a.prompt(id, "say after"))
	a.call("session/close", sessionParams(id), nil)
	a.requireWords(id, listed{Cwd: cwd, AdditionalDirectories: []string{}}, []string{"say before", "before", "wait", "say after", "after"})
}
