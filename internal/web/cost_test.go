package web_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/web"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause K1.
func TestCostOfSessions(t *testing.T) {
	store := memstore.New(t)
	roots, err := workspace.NewRoots(dirtest.New(t), nil)
	require.NoError(t, err)
	lease, err := store.Create(t.Context(), sessionstore.Session{ID: "one", Agent: sessionstore.Agent{Kind: "model"},
		Keys: sessionstore.Keys{Roots: roots, Real: []workspace.Dir{workspace.Real(roots.Cwd())}}})
	require.NoError(t, err)
	require.NoError(t, store.Charge(t.Context(), lease, []sessionstore.Charge{
		{Meter: sessionstore.CostMeter, Unit: "USD", Amount: 1.5}, {Meter: sessionstore.CostMeter, Unit: "EUR", Amount: 2},
		{Meter: sessionstore.CostMeter, Unit: "GBP"}, {Meter: sessionstore.TurnMeter, Amount: 1},
	}))
	require.NoError(t, store.SetTitle(t.Context(), lease, "A session")) // others are not listed
	c := enter(t, serve(t, web.Options{Store: store, Details: func(sessionstore.Session) web.Details {
		return web.Details{}
	}}))
	var list struct{ Sessions []struct{ Cost []string } }
	c.get(&list, "sessions")
	require.Len(t, list.Sessions, 1)
	require.Equal(t, []string{"2.0000 EUR", "1.5000 USD"}, list.Sessions[0].Cost)
	var one struct{ Cost []string }
	c.get(&one, "session", "id", "one")
	require.Equal(t, list.Sessions[0].Cost, one.Cost)
}
