package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// What is stored of a session that was deleted in its agent is listed until the user deletes it.
//
// Clause A31.
func TestListMarksSessionsDeletedInTheirAgent(t *testing.T) {
	store := memstore.New(t)
	roots, err := workspace.NewRoots(t.TempDir(), nil)
	require.NoError(t, err)
	keys := sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}}
	agent := sessionstore.Agent{Kind: "proxy", Profile: "x"}
	_, err = store.Import(t.Context(), agent, []sessionstore.Session{
		{ID: "a", StateKey: "a", Keys: keys, Title: "opened here"},
		{ID: "b", StateKey: "b", Keys: keys, Title: "never opened here"},
	}, false)
	require.NoError(t, err)
	lease, err := store.Activate(t.Context(), "a", sessionstore.Activation{Keys: keys})
	require.NoError(t, err)
	_, err = store.BeginTurn(t.Context(), lease, sessionstore.Turn{})
	require.NoError(t, err)
	_, err = store.Retain(t.Context(), agent, sessionstore.Listed{Asked: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		set := newSettings(streams{out: &out, err: &out})
		set.json = json
		q, err := listFlags{}.query()
		require.NoError(t, err)
		require.NoError(t, listSessions(t.Context(), set, store, q, 0))
		require.Contains(t, out.String(), "opened here")
		require.Contains(t, out.String(), map[bool]string{
			false: "[deleted in the agent] opened here", true: `"deletedInAgent":true`,
		}[json])
		require.NotContains(t, out.String(), "never opened")
	}
}
