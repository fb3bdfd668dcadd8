package acp_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// spentIn returns what the sessions of a store have used of a meter, by unit.
func spentIn(
	t *testing.T, s sessionstore.Store, q sessionstore.ChargeQuery,
) (sums map[string]float64, marks []sessionstore.Mark) {
	t.Helper()
	charges, err := s.Sums(t.Context(), q)
	require.NoError(t, err)
	sums = map[string]float64{}
	for _, c := range charges {
		if c.Amount > 0 {
			sums[c.Unit] += c.Amount
		}
		if c.Mark != "" {
			marks = append(marks, c.Mark)
		}
	}
	return sums, marks
}

func cost(id string) sessionstore.ChargeQuery {
	return sessionstore.ChargeQuery{Session: sessionstore.ID(id), Meter: sessionstore.CostMeter}
}

// A session's cost is counted once, over restarts of the program, forks and other windows.
//
// Clause K1.
func TestCostIsCountedOnce(t *testing.T) {
	store := memstore.New(t)
	options := func() acp.Options {
		return acp.Options{Store: store, Backend: using(&scripted{usage: backend.Usage{Tokens: backend.TokensOfTurn}})}
	}
	c := start(t, options())
	dir := folder(t)
	id := c.open(dir)
	for _, prompt := range []string{"spend 0.5", "spend 0.5", "spend 2", "say nothing", "spend 0", "spend -1",
		"spend 1e300", `spend "NaN"`, "spend 7 EUR"} {
		c.call("session/prompt", promptParams(id, prompt))
	}
	sums, marks := spentIn(t, store, cost(id))
	require.Equal(t, map[string]float64{"USD": 2, "EUR": 7}, sums)
	require.Empty(t, marks)
	c.call("session/load", rootsParams(id, dir))
	c.call("session/prompt", promptParams(id, "spend 2.5"))
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(id, dir)), &fork))
	c.call("session/prompt", promptParams(fork.SessionID, "spend 3"))

	again := start(t, options())
	again.call("session/resume", rootsParams(id, dir))
	again.call("session/prompt", promptParams(id, "spend 0.25"))
	again.call("session/prompt", promptParams(id, "spend 0.125"))
	sums, marks = spentIn(t, store, cost(id))
	require.Equal(t, map[string]float64{"USD": 2.5 + 0.25 + 0.125, "EUR": 7}, sums)
	require.Equal(t, []sessionstore.Mark{sessionstore.ResetMark}, marks)
	sums, _ = spentIn(t, store, cost(fork.SessionID))
	require.Equal(t, map[string]float64{"USD": 0.5}, sums, "it goes on where its source was")

	turns, _ := spentIn(t, store, sessionstore.ChargeQuery{Session: sessionstore.ID(id), Meter: sessionstore.TurnMeter})
	require.Equal(t, map[string]float64{"": 12}, turns)
	input, _ := spentIn(t, store, sessionstore.ChargeQuery{Session: sessionstore.ID(id), Meter: sessionstore.InputMeter})
	require.Equal(t, map[string]float64{"": 110}, input)
}

// The response says what the turn and the session have cost.
func TestCostInResponse(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	require.JSONEq(t, `{"stopReason":"end_turn"}`, string(c.call("session/prompt", promptParams(id, "say hello"))))
	for _, turn := range [][2]string{
		{"spend 0.5", `{"turn":{"USD":0.5},"session":{"USD":0.5}}`},
		{"spend 0.75", `{"turn":{"USD":0.25},"session":{"USD":0.75}}`},
		{"say hello", `{"turn":{},"session":{"USD":0.75}}`},
	} {
		var response struct {
			Meta struct {
				Ours struct{ Cost json.RawMessage } `json:"acp-agent"`
			} `json:"_meta"`
		}
		require.NoError(t, json.Unmarshal(c.call("session/prompt", promptParams(id, turn[0])), &response))
		require.JSONEq(t, turn[1], string(response.Meta.Ours.Cost))
	}
	require.JSONEq(t, `{"stopReason":"end_turn"}`, string(c.call("session/prompt", promptParams(id, "/roots"))),
		"acp-agent answers that")
}

// If charges cannot be stored, turns go on, and what was used is stored later. A window that lost
// its session counts nothing more.
//
// Clause K1.
func TestCostIsStoredLater(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	var mu sync.Mutex
	observed := 0.0
	c := start(t, acp.Options{Store: store, Observe: func(e acp.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e, ok := e.(acp.UsageEvent); ok {
			for _, charge := range e.Charges {
				if charge.Meter == sessionstore.CostMeter {
					observed += charge.Amount
				}
			}
		}
	}})
	dir := folder(t)
	id := c.open(dir)
	store.broken.Store(true)
	c.call("session/prompt", promptParams(id, "spend 1"))
	c.call("session/prompt", promptParams(id, "spend 3"))
	sums, _ := spentIn(t, store, cost(id))
	require.Empty(t, sums)
	store.broken.Store(false)
	c.call("session/close", idParams(id))
	sums, _ = spentIn(t, store, cost(id))
	require.Equal(t, map[string]float64{"USD": 3}, sums)
	mu.Lock()
	require.InDelta(t, 3, observed, 0)
	mu.Unlock()

	c.call("session/load", rootsParams(id, dir))
	other := start(t, acp.Options{Store: store})
	other.call("session/load", rootsParams(id, dir))
	_ = c.try("session/prompt", promptParams(id, "spend 100"))
	other.call("session/prompt", promptParams(id, "spend 4"))
	sums, _ = spentIn(t, store, cost(id))
	require.Equal(t, map[string]float64{"USD": 4}, sums)
}
