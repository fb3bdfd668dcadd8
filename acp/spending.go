package acp

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// endSpending stores what was used in the turn, which ran in s, and tells the user which budgets it
// has used up. It returns the response with what the turn and the session have cost.
func (p *prompted) endSpending(s *session, result backend.Raw) backend.Raw {
	ctx, cancel := tasks.Commit(p.Context())
	defer cancel()
	charges, session := s.spending.EndTurn(ctx, result)
	p.from.observeUsage(s.id, charges)
	turn := metering.Sum(charges, sessionstore.CostMeter)
	if len(turn) > 0 {
		for _, note := range s.budgets.usedUp(ctx, turn) {
			if err := s.transcript.send(ctx, note, showFirst); err != nil {
				s.adapter.log.Debug("notice not sent", "session", s.id, "error", err)
			}
		}
	}
	if len(session) == 0 || !strictjson.IsObject(result) {
		return result
	}
	return withMeta(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}
