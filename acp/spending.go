package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/metering"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// spending counts what a session uses, from what its agent reports, and stores it when a turn ends.
type spending struct {
	session *session

	mu       sync.Mutex
	meters   *metering.Meters   // nil until something was reported
	source   string             // of readings, once meters is set
	total    map[string]float64 // what the session has cost, by currency, once meters is set
	turns    int                // that are running
	prompted bool               // the agent was given a prompt
	stored   time.Time          // when charges were last stored
	warned   bool               // the user was told that they cannot be stored
	exceeds  map[Budget]string  // budgets that the user allows to exceed, with the day
}

// chargeEvery is how often charges are stored that are not of a turn.
const chargeEvery = time.Second

func newSpending(s *session) *spending {
	return &spending{session: s}
}

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
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.load(ctx) {
		return // the next reading has what this one misses
	}
	p.meters.Cost(p.source, cost.Currency, *cost.Amount)
	if p.turns == 0 && time.Since(p.stored) >= chargeEvery {
		p.store(ctx, p.session.agent.connection)
	}
}

// load prepares to count, with what is known of the session from before. It reports whether that
// succeeded.
func (p *spending) load(ctx context.Context) bool {
	if p.meters != nil {
		return true
	}
	s := p.session
	err := s.agent.tasks.Guard("session store", func() error {
		stored, err := s.agent.options.Store.Get(ctx, s.host.stored)
		if err != nil {
			return err
		}
		account, err := s.agent.options.Store.Account(ctx, s.host.stored)
		if err != nil {
			return err
		}
		sums, err := s.agent.options.Store.Sums(ctx, sessionstore.ChargeQuery{
			Session: s.host.stored, Meter: sessionstore.CostMeter})
		if err != nil {
			return err
		}
		p.total = metering.Sum(sums, sessionstore.CostMeter)
		p.source = sourceOf(stored.StateKey)
		p.meters = metering.New(account, s.agent.info().Usage)
		return nil
	})
	if err != nil {
		s.agent.log.Debug("cannot read what the session has used", "session", s.id, "error", err)
		return false
	}
	if p.prompted {
		p.meters.Prompt()
	}
	return true
}

// sourceOf returns a short name for the agent's session with a state key.
func sourceOf(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// readFrom notes that later readings are of the agent's session with a state key.
func (p *spending) readFrom(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source = sourceOf(key)
}

// beginTurn notes that the agent is given a prompt. endTurn or dropTurn follows.
func (p *spending) beginTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	p.prompted = true
	if p.meters != nil {
		p.meters.Prompt()
	}
}

// dropTurn notes that the agent was not given the prompt after all.
func (p *spending) dropTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns--
}

// endTurn stores what was used in a turn that by has prompted, and whose response is result. It
// returns what the turn and the session have cost.
func (p *spending) endTurn(
	ctx context.Context, by *connection, result backend.Raw,
) (turn, session map[string]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns--
	if !p.load(ctx) {
		return nil, nil
	}
	p.meters.Turn(p.source, tokensOf(result))
	return p.store(ctx, by), maps.Clone(p.total)
}

// endSpending stores what was used in a turn of s, and tells the user which budgets it has used up.
// It returns the response of the turn with what the turn and the session have cost.
func (s *session) endSpending(
	t *turns.Turn, by *connection, p *spending, result backend.Raw,
) backend.Raw {
	ctx, cancel := commitContext(t.Context())
	defer cancel()
	turn, session := p.endTurn(ctx, by, result)
	if len(turn) > 0 {
		s.tellBudgets(ctx, turn)
	}
	return withCost(result, turn, session)
}

// exceed notes that the user allows to exceed a budget in this session, for the rest of the day.
func (p *spending) exceed(b Budget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exceeds == nil {
		p.exceeds = map[Budget]string{}
	}
	p.exceeds[b] = time.Now().Format(time.DateOnly)
}

// mayExceed reports whether exceed was called today.
func (p *spending) mayExceed(b Budget) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exceeds[b] == time.Now().Format(time.DateOnly)
}

// close stores what was used since the last turn.
func (p *spending) close(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meters != nil {
		p.store(ctx, p.session.agent.connection)
	}
}

// store stores what was used since it was last called, tells the observer of by, and returns what
// it cost. If the store fails, the next call tries again.
func (p *spending) store(ctx context.Context, by *connection) (cost map[string]float64) {
	s := p.session
	charges := p.meters.Take()
	if len(charges) == 0 {
		return nil
	}
	p.stored = time.Now()
	cost = metering.Sum(charges, sessionstore.CostMeter)
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.Charge(ctx, l, charges)
	})
	switch {
	case gone(err):
		return nil // who has the session now counts
	case err != nil:
		for i := range charges {
			charges[i].At = p.stored
		}
		p.meters.Return(charges)
		if !p.warned {
			p.warned = true
			s.agent.log.Warn("cannot store what the session has used; will try again",
				"session", s.id, "error", err)
		}
		return nil
	}
	for unit, amount := range cost {
		p.total[unit] += amount
	}
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
	cost := backend.Encode(map[string]any{"turn": turn, "session": session})
	meta := strictjson.Find(result, "_meta")
	ours := strictjson.Set(strictjson.Find(meta, "acp-agent"), "cost", cost)
	return strictjson.Set(result, "_meta", strictjson.Set(meta, "acp-agent", ours))
}
