package metering

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Options configure a [Spending].
type Options struct {
	ID    sessionstore.ID // in the store
	Store interface {
		sessionstore.Sessions
		sessionstore.Ledger
	}
	// Write writes to the store with the session's lease.
	Write func(do func(sessionstore.Lease) error) error
	Usage backend.Usage
	Tasks *tasks.Group
	Log   *slog.Logger
}

// Spending counts what a session uses, from what its agent reports, and stores it when a turn ends.
// It is safe for concurrent use.
type Spending struct {
	options Options

	mu     sync.Mutex
	meters *meters
	source string             // of readings
	total  map[string]float64 // what the session has cost, by currency, nil until that is needed
	turns  int                // that are running
	stored time.Time          // when charges were last stored
	warned bool               // the user was told that they cannot be stored
}

// NewSpending returns the spending of a session for which nothing was reported yet.
func NewSpending(o Options) *Spending {
	return &Spending{options: o, meters: newMeters(sessionstore.Account{}, o.Usage)}
}

// chargeEvery is how often charges are stored that are not of a turn.
const chargeEvery = time.Second

// SetSource sets the agent's session whose counters are read from now on, by its state key.
func (p *Spending) SetSource(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source = sourceOf(key)
}

// Note counts the cost that an update reports, if it does. It returns what it has stored.
func (p *Spending) Note(ctx context.Context, u sessionstore.Update) []sessionstore.Charge {
	if u.Kind != sessionstore.UsageUpdate {
		return nil
	}
	var cost struct {
		Amount   *float64 `json:"amount"`
		Currency string   `json:"currency"`
	}
	if json.Unmarshal(strictjson.Find(u.Body(), "cost"), &cost) != nil || cost.Amount == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loadLocked(ctx) != nil {
		return nil // the next reading has what this one misses
	}
	p.meters.Cost(p.source, cost.Currency, *cost.Amount)
	if p.turns > 0 || time.Since(p.stored) < chargeEvery {
		return nil
	}
	return p.storeLocked(ctx)
}

// loadLocked prepares to count, with what is known of the session from before.
func (p *Spending) loadLocked(ctx context.Context) error {
	if p.total != nil {
		return nil
	}
	o := p.options
	err := o.Tasks.Guard("session store", func() error {
		stored, err := o.Store.Get(ctx, o.ID)
		if err != nil {
			return err
		}
		account, err := o.Store.Account(ctx, o.ID)
		if err != nil {
			return err
		}
		sums, err := o.Store.Sums(ctx, sessionstore.ChargeQuery{
			Session: o.ID, Meter: sessionstore.CostMeter})
		if err != nil {
			return err
		}
		p.total = Sum(sums, sessionstore.CostMeter)
		p.source = cmp.Or(p.source, sourceOf(stored.StateKey))
		prompted := p.meters.prompted
		p.meters = newMeters(account, o.Usage)
		p.meters.prompted = prompted
		return nil
	})
	if err != nil {
		o.Log.Debug("cannot read what the session has used", "session", o.ID, "error", err)
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

// BeginTurn notes that the agent is given a prompt. EndTurn follows.
func (p *Spending) BeginTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns++
	p.meters.prompted = true
}

// EndTurn stores what was used in a turn whose response is result, and returns it, with what the
// session has cost.
func (p *Spending) EndTurn(
	ctx context.Context, result backend.Raw,
) (turn []sessionstore.Charge, session map[string]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns--
	if p.loadLocked(ctx) != nil {
		return nil, nil
	}
	p.meters.Turn(p.source, tokensOf(result))
	turn = p.storeLocked(ctx)
	return turn, maps.Clone(p.total)
}

// Store stores what was used since it was last stored, and returns it.
func (p *Spending) Store(ctx context.Context) []sessionstore.Charge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.storeLocked(ctx)
}

// storeLocked stores what is pending. If the store fails, the next call tries again.
func (p *Spending) storeLocked(ctx context.Context) []sessionstore.Charge {
	o, charges := p.options, p.meters.pending
	if len(charges) == 0 {
		return nil
	}
	p.stored = time.Now()
	err := o.Write(func(l sessionstore.Lease) error { return o.Store.Charge(ctx, l, charges) })
	if err != nil && !record.Gone(err) {
		for i := range charges {
			charges[i].At = p.stored
		}
		if !p.warned {
			o.Log.Warn("cannot store what the session has used; will try again",
				"session", o.ID, "error", err)
		}
		p.warned = true
		return nil
	}
	p.meters.pending = nil
	if err != nil {
		return nil // who has the session now counts
	}
	for unit, amount := range Sum(charges, sessionstore.CostMeter) {
		p.total[unit] += amount
	}
	return charges
}

// tokensOf returns the tokens in the response to a prompt, by meter.
func tokensOf(result backend.Raw) map[sessionstore.Meter]float64 {
	tokens := map[sessionstore.Meter]float64{}
	for meter, name := range map[sessionstore.Meter]string{
		sessionstore.InputMeter: "inputTokens", sessionstore.OutputMeter: "outputTokens",
		sessionstore.CachedReadMeter:  "cachedReadTokens",
		sessionstore.CachedWriteMeter: "cachedWriteTokens",
		sessionstore.ThoughtMeter:     "thoughtTokens",
	} {
		var n *float64
		raw := strictjson.Find(result, "usage", name)
		if raw == nil { // of a backend that sends only what is stable in the protocol
			raw = strictjson.Find(protocol.FindOurs(result), "usage", name)
		}
		if len(raw) > 0 && json.Unmarshal(raw, &n) == nil && n != nil {
			tokens[meter] = *n
		}
	}
	return tokens
}
