package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause S4.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
	path := filepath.Join(state, "sessions.db")
	damage := strings.Repeat("this is no database ", 1000)
	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.WriteFile(path, []byte(damage), 0o600))
	a := startIn(t, state).initialize()
	opened := map[string]any{"sessionId": "x", "cwd": cwd, "mcpServers": []any{}}
	for method, params := range map[string]any{
		"session/new": opened, "session/load": opened, "session/resume": opened, "session/fork": opened,
		"session/list": map[string]any{}, "session/delete": sessionParams("x"),
	} {
		for range 2 {
			m := a.try(method, params)
			require.NotNil(t, m.Error, method)
			require.Contains(t, m.Error.Message, path, method)
			require.Contains(t, m.Error.Message, `run "acp-agent sessions repair"`, method)
		}
	}
	a.leave()
	require.Equal(t, damage, dirtest.Read(t, path))
	files, err := filepath.Glob(filepath.Join(state, "sessions*.db"))
	require.NoError(t, err)
	require.Equal(t, []string{path}, files, "nothing was moved away")

	out, err := exec.CommandContext(t.Context(), program.Path(), "--state-dir", state, "sessions", "repair").CombinedOutput()
	require.NoError(t, err, "%s", out)
	kept, err := filepath.Glob(filepath.Join(state, "sessions.damaged-*.db"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, damage, dirtest.Read(t, kept[0]))
	a = startIn(t, state).initialize()
	a.open(cwd)
}

// keep stores two old sessions: one that was never prompted and one that was.
func keep(t *testing.T, state, cwd string, ago time.Duration) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: state, Now: func() time.Time { return time.Now().Add(-ago) }})
	roots, err := workspace.NewRoots(cwd, nil)
	require.NoError(t, err)
	keys := sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}}
	for _, name := range []string{"unused", "used"} {
		id := sessionstore.ID(name + " for " + ago.String())
		lease, err := s.Create(t.Context(), sessionstore.Session{ID: id, Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys})
		require.NoError(t, err)
		if name == "used" {
			_, err := s.BeginTurn(t.Context(), lease, sessionstore.Turn{Title: name})
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.Close())
}

// Clause S10.
func TestPruneUnpromptedSessions(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
	for _, ago := range []time.Duration{sessionstore.Retention + day, sessionstore.Retention - day} {
		keep(t, state, cwd, ago)
	}
	// ids returns the sessions in the store, and then uses it with the program.
	ids := func() (ids []string) {
		store := sqlite.New(sqlite.Options{Dir: state})
		page, err := store.List(t.Context(), sessionstore.Query{})
		require.NoError(t, err)
		require.NoError(t, store.Close())
		for _, s := range page.Sessions {
			ids = append(ids, string(s.ID))
		}
		a := startIn(t, state).initialize()
		for _, s := range a.list(map[string]any{"cwd": cwd}) {
			require.NotContains(t, s.SessionID, "unused", "A35")
		}
		a.leave()
		return ids
	}
	require.Len(t, ids(), 4, "it is done when the program ends")
	require.Equal(t, []string{"used for 696h0m0s", "unused for 696h0m0s", "used for 744h0m0s"}, ids())

	prune := func(args ...string) string {
		command := append([]string{"--state-dir", state, "sessions", "prune"}, args...)
		out, err := exec.CommandContext(t.Context(), program.Path(), command...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, prune(), "removed 0 sessions")
	require.Contains(t, prune("--older-than", "12d"), "removed 1 session")
	require.Equal(t, []string{"used for 696h0m0s", "used for 744h0m0s"}, ids())
	require.Contains(t, prune("--all", "--older-than", "30d"), "removed 1 session")
	require.Equal(t, []string{"used for 696h0m0s"}, ids())
}
