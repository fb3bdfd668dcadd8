package acp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// spending counts what a session uses, from what its agent reports, and stores it when a turn ends.
// The session's state guards its other fields.
type spending struct {
	session *session

	meters   *metering.Meters   // nil until something was reported
	source   string             // of readings
	total    map[string]float64 // what the session has cost, by currency, once meters is set
	turns    int                // that are running
	prompted bool               // the agent was given a prompt
	stored   time.Time          // when charges were last stored
	warned   bool               // the user was told that they cannot be stored
	exceeds  map[Budget]string  // budgets that the user allows to exceed, with the day
}

// chargeEvery is how often charges are stored that are not of a turn.
const chargeEvery = time.Second

// note counts the cost that an update reports, if it does.
func (p *spending) note(ctx context.Context, u backend.Update) {
	if u.Kind != sessionstore.UsageUpdate {
		return
	}
	var cost struct {
		Amount   *float64 `json:"amount"`
		Currency string   `json:"currency"`
	}
	raw := strictjson.Find(u.Raw, "update", "cost")
	if len(raw) == 0 || json.Unmarshal(raw, &cost) != nil || cost.Amount == nil {
		return
	}
	if p.load(ctx) != nil {
		return // the next reading has what this one misses
	}
	isDue := false
	p.session.withState(func() {
		p.meters.Cost(p.source, cost.Currency, *cost.Amount)
		isDue = p.turns == 0 && time.Since(p.stored) >= chargeEvery
	})
	if isDue {
		p.store(ctx, p.session.agent.connection)
	}
}

// load prepares to count, with what is known of the session from before.
func (p *spending) load(ctx context.Context) error {
	s, isLoaded := p.session, false
	if s.withState(func() { isLoaded = p.meters != nil }); isLoaded {
		return nil
	}
	err := s.agent.tasks.Guard("session store", func() error {
		stored, err := s.agent.options.Store.Get(ctx, s.stored)
		if err != nil {
			return err
		}
		account, err := s.agent.options.Store.Account(ctx, s.stored)
		if err != nil {
			return err
		}
		sums, err := s.agent.options.Store.Sums(ctx, sessionstore.ChargeQuery{
			Session: s.stored, Meter: sessionstore.CostMeter})
		if err != nil {
			return err
		}
		s.withState(func() {
			if p.meters != nil {
				return
			}
			p.total = metering.Sum(sums, sessionstore.CostMeter)
			p.source = cmp.Or(p.source, sourceOf(stored.StateKey))
			p.meters = metering.New(account, s.agent.info().Usage)
			if p.prompted {
				p.meters.Prompt()
			}
		})
		return nil
	})
	if err != nil {
		s.agent.log.Debug("cannot read what the session has used", "session", s.id, "error", err)
	}
	return err
}

// sourceOf returns a short name for the agent's session with a state key.
func sourceOf(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// beginTurn notes that the agent is given a prompt. endTurn or dropTurn follows.
func (p *spending) beginTurn() {
	p.session.withState(func() {
		p.turns++
		p.prompted = true
		if p.meters != nil {
			p.meters.Prompt()
		}
	})
}

// dropTurn notes that the agent was not given the prompt after all.
func (p *spending) dropTurn() { p.session.withState(func() { p.turns-- }) }

// endTurn stores what was used in a turn that by has prompted, and whose response is result. It
// returns what the turn and the session have cost.
func (p *spending) endTurn(
	ctx context.Context, by *connection, result backend.Raw,
) (turn, session map[string]float64) {
	p.dropTurn()
	if p.load(ctx) != nil {
		return nil, nil
	}
	p.session.withState(func() { p.meters.Turn(p.source, tokensOf(result)) })
	turn = p.store(ctx, by)
	p.session.withState(func() { session = maps.Clone(p.total) })
	return turn, session
}

// endSpending stores what was used in a turn of s, and tells the user which budgets it has used up.
// It returns the response of the turn with what the turn and the session have cost.
func (s *session) endSpending(
	t *turns.Turn, by *connection, p *spending, result backend.Raw,
) backend.Raw {
	ctx, cancel := tasks.Commit(t.Context())
	defer cancel()
	turn, session := p.endTurn(ctx, by, result)
	if len(turn) > 0 {
		s.tellBudgets(ctx, turn)
	}
	return withCost(result, turn, session)
}

// store stores what was used since it was last called, tells the observer of by, and returns what
// it cost. If the store fails, the next call tries again.
func (p *spending) store(ctx context.Context, by *connection) (cost map[string]float64) {
	s, now := p.session, time.Now()
	var charges []sessionstore.Charge
	s.withState(func() {
		if p.meters != nil {
			charges = p.meters.Take()
		}
		if len(charges) > 0 {
			p.stored = now
		}
	})
	if len(charges) == 0 {
		return nil
	}
	cost = metering.Sum(charges, sessionstore.CostMeter)
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.Charge(ctx, l, charges)
	})
	switch {
	case gone(err):
		return nil // who has the session now counts
	case err != nil:
		for i := range charges {
			charges[i].At = now
		}
		warned := false
		s.withState(func() {
			p.meters.Return(charges)
			warned, p.warned = p.warned, true
		})
		if !warned {
			s.agent.log.Warn("cannot store what the session has used; will try again",
				"session", s.id, "error", err)
		}
		return nil
	}
	s.withState(func() {
		for unit, amount := range cost {
			p.total[unit] += amount
		}
	})
	by.observe(UsageEvent{s.id, charges})
	return cost
}

// tokensOf returns the tokens in the response to a prompt.
func tokensOf(result backend.Raw) metering.Tokens {
	tokens := metering.Tokens{}
	for meter, name := range map[sessionstore.Meter]string{
		sessionstore.InputMeter: "inputTokens", sessionstore.OutputMeter: "outputTokens",
		sessionstore.CachedReadMeter:  "cachedReadTokens",
		sessionstore.CachedWriteMeter: "cachedWriteTokens",
		sessionstore.ThoughtMeter:     "thoughtTokens",
	} {
		var n *float64
		raw := strictjson.Find(result, "usage", name)
		if raw == nil { // of a backend that sends only what is stable in the protocol
			raw = strictjson.Find(result, "_meta", "acp-agent", "usage", name)
		}
		if len(raw) > 0 && json.Unmarshal(raw, &n) == nil && n != nil {
			tokens[meter] = *n
		}
	}
	return tokens
}

// withCost returns the response to a prompt with what the turn and the session have cost.
func withCost(result backend.Raw, turn, session map[string]float64) backend.Raw {
	if len(session) == 0 || !strictjson.IsObject(result) {
		return result
	}
	if turn == nil {
		turn = map[string]float64{}
	}
	return withMeta(result, "cost",
		backend.Encode(map[string]any{"turn": turn, "session": session}))
}
