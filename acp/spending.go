package acp

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// newSpending returns the spending of s, which is about to be active.
func (s *session) newSpending() *metering.Spending {
	a := s.agent
	return metering.NewSpending(metering.Options{ID: s.storeID, Store: a.options.Store,
		Write: s.record.Write, Usage: a.info().Usage, Tasks: a.tasks, Log: a.log})
}

// charged tells the observer of a client what was stored as used.
func (s *session) charged(by *connection, charges []sessionstore.Charge) {
	if len(charges) > 0 {
		by.observe(UsageEvent{s.id, charges})
	}
}

// endSpending stores what was used in a turn of s that by has prompted, and tells the user which
// budgets it has used up. It returns the response of the turn with what the turn and the session
// have cost.
func (s *session) endSpending(t *turns.Turn, by *connection, result backend.Raw) backend.Raw {
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	charges, session := s.spending.EndTurn(ctx, result)
	s.charged(by, charges)
	turn := metering.Sum(charges, sessionstore.CostMeter)
	if len(turn) > 0 {
		s.tellBudgets(ctx, turn)
	}
	return withCost(result, turn, session)
}

// withCost returns the response to a prompt with what the turn and the session have cost.
func withCost(result backend.Raw, turn, session map[string]float64) backend.Raw {
	if len(session) == 0 || !strictjson.IsObject(result) {
		return result
	}
	return withMeta(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}
