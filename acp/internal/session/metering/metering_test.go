package metering

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The cases of the counting rule.
//
// Clause K1.
func TestCount(t *testing.T) {
	known := counter{known: true, last: 5}
	for name, c := range map[string]struct {
		counter counter
		reading float64
		now     circumstances
		amount  float64
		mark    sessionstore.Mark
		nothing bool
	}{
		"nothing was used":                  {reading: 0, counter: known, nothing: true},
		"negative":                          {reading: -1, counter: known, nothing: true},
		"not a number":                      {reading: math.NaN(), counter: known, nothing: true},
		"infinite":                          {reading: math.Inf(1), nothing: true},
		"absurd":                            {reading: 1e300, nothing: true},
		"made by us":                        {reading: 2, amount: 2},
		"used before, and idle":             {reading: 2, now: circumstances{before: true, idle: true}, mark: sessionstore.BeforeMark},
		"used before, after a turn":         {reading: 2, now: circumstances{before: true, first: true}, mark: sessionstore.PartialMark},
		"used before, restarts":             {reading: 2, now: circumstances{before: true, first: true, restarts: true}, amount: 2},
		"used before, restarts, idle":       {reading: 2, now: circumstances{before: true, idle: true, restarts: true}, mark: sessionstore.BeforeMark},
		"opened again, restarts":            {reading: 6, counter: known, now: circumstances{first: true, restarts: true}, amount: 6},
		"opened again, keeps its total":     {reading: 6, counter: known, now: circumstances{first: true}, amount: 1},
		"opened again, begins again":        {reading: 4, counter: known, now: circumstances{first: true}, amount: 4},
		"opened again, nothing used":        {reading: 5, counter: known, now: circumstances{first: true}, amount: 0},
		"grows":                             {reading: 7, counter: known, amount: 2},
		"stays":                             {reading: 5, counter: known, amount: 0},
		"cleared":                           {reading: 1, counter: known, amount: 1, mark: sessionstore.ResetMark},
		"cleared by an agent that restarts": {reading: 1, counter: known, now: circumstances{restarts: true}, amount: 1, mark: sessionstore.ResetMark},
	} {
		t.Run(name, func(t *testing.T) {
			amount, mark, ok := c.counter.count(c.reading, c.now)
			require.Equal(t, !c.nothing, ok)
			require.InDelta(t, c.amount, amount, 1e-9)
			require.Equal(t, c.mark, mark)
		})
	}
}

// take returns what is to be stored, as if that was done.
func take(m *meters) []sessionstore.Charge {
	taken := m.pending
	m.pending = nil
	return taken
}

// total returns what charges cost.
func total(charges []sessionstore.Charge, unit string) float64 {
	return Sum(charges, sessionstore.CostMeter)[unit]
}

// Readings that agents have sent.
//
// Clause K1.
func TestSeries(t *testing.T) {
	for name, c := range map[string]struct {
		readings []float64
		reports  backend.Usage
		want     float64
	}{
		"a total that restarted": {
			readings: []float64{24.79, 84.98, 90.60, 91.43, 93.78, 96.58, 117.62, 1.08},
			want:     117.62 + 1.08,
		},
		"repeated readings":   {readings: []float64{0.5, 0.5, 0.5, 0.75, 0.75}, want: 0.75},
		"zeros of crashes":    {readings: []float64{0.5, 0, 0.75, 0, 0.8}, want: 0.8},
		"cleared twice":       {readings: []float64{3, 1, 2, 0.5}, want: 5.5},
		"of one turn":         {readings: []float64{0.25}, want: 0.25},
		"an agent at no cost": {readings: []float64{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeters(sessionstore.Account{}, c.reports)
			var all []sessionstore.Charge
			for _, reading := range c.readings {
				m.prompted = true
				m.Cost("a", "USD", reading)
				m.Turn("a", nil)
				all = append(all, take(m)...)
			}
			require.InDelta(t, c.want, total(all, "USD"), 1e-9)
		})
	}
}

func TestCurrencyChanges(t *testing.T) {
	m := newMeters(sessionstore.Account{}, backend.Usage{})
	m.prompted = true
	for _, r := range []struct {
		unit   string
		amount float64
	}{{"USD", 1}, {"EUR", 0.5}, {"usd", 3}, {"credits", 100}, {"", 7}, {"\x1b[0m", 7}, {"EUR", 0.75}} {
		m.Cost("a", r.unit, r.amount)
	}
	require.Equal(t, map[string]float64{"USD": 3, "EUR": 0.75, "credits": 100},
		Sum(take(m), sessionstore.CostMeter))
}

// An agent that reports ever more currencies fills neither the memory nor the store.
func TestManyCurrencies(t *testing.T) {
	m := newMeters(sessionstore.Account{}, backend.Usage{})
	for i := range 1000 {
		m.Cost("a", fmt.Sprintf("unit %d", i), 1)
	}
	m.Cost("a", "unit 0", 2)
	sums := Sum(take(m), sessionstore.CostMeter)
	require.Len(t, sums, maxCounters)
	require.InDelta(t, 2, sums["unit 0"], 0)
}

func TestTokens(t *testing.T) {
	used := map[sessionstore.Meter]float64{sessionstore.InputMeter: 10, sessionstore.OutputMeter: 3, sessionstore.ThoughtMeter: math.NaN()}
	more := map[sessionstore.Meter]float64{sessionstore.InputMeter: 25, sessionstore.OutputMeter: -1}
	for count, want := range map[backend.TokenCount]float64{
		backend.TokensUnknown: 0, backend.TokensOfTurn: 35, backend.TokensOfSession: 25,
	} {
		m := newMeters(sessionstore.Account{}, backend.Usage{Tokens: count})
		m.Turn("a", used)
		m.Turn("a", more)
		charges := take(m)
		require.InDelta(t, want, Sum(charges, sessionstore.InputMeter)[""], 0)
		require.InDelta(t, 2, Sum(charges, sessionstore.TurnMeter)[""], 0)
		require.Empty(t, Sum(charges, sessionstore.ThoughtMeter))
		for _, c := range charges {
			require.NoError(t, sessionstore.ValidateCharges([]sessionstore.Charge{c}))
		}
	}
}

// spender is an agent with known spending.
type spender struct {
	keeps bool // its counter survives when a session is opened again
	saved float64
	shown float64
}

// open opens its session, again or as a fork.
func (s *spender) open() {
	s.shown = 0
	if s.keeps {
		s.shown = s.saved
	}
}

func (s *spender) spend(amount float64) {
	s.shown += amount
	s.saved = s.shown
}

func (s *spender) clear() { s.shown, s.saved = 0, 0 }

// ledger is what a store keeps of a session.
type ledger struct {
	charges []sessionstore.Charge
	account sessionstore.Account
}

func (l *ledger) add(charges []sessionstore.Charge) {
	l.charges = append(l.charges, charges...)
	for _, c := range charges {
		kept := []sessionstore.Charge{c}
		for _, old := range l.account.Latest {
			if old.Meter != c.Meter || old.Unit != c.Unit {
				kept = append(kept, old)
			}
		}
		l.account.Latest = kept
	}
}

// Whatever happens to sessions, the sum of the charges is what was spent. An agent that is not
// known and begins again must spend less in its first turn than in all before, or it is
// undercounted: the test keeps to that.
//
// Clause K1.
func TestSumIsWhatWasSpent(t *testing.T) {
	profiles := map[string]struct {
		keeps   bool
		reports backend.Usage
	}{
		"known to restart":  {keeps: false, reports: backend.Usage{Restarts: true}},
		"keeps its total":   {keeps: true},
		"unknown, restarts": {keeps: false},
	}
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				agent, book := &spender{keeps: profile.keeps}, &ledger{}
				meters := newMeters(book.account, profile.reports)
				spent, opened := 0.0, false // opened again, and nothing spent since
				cleared := false            // since charges were stored
				turn := func(most float64) {
					meters.prompted = true
					for range rapid.IntRange(1, 3).Draw(t, "readings") {
						amount := math.Round(rapid.Float64Range(0.01, most).Draw(t, "amount")*1e4) / 1e4
						if opened && profile.reports == (backend.Usage{}) && !profile.keeps {
							if amount = min(amount, agent.saved/2); amount == 0 {
								continue
							}
						}
						opened = false
						agent.spend(amount)
						spent += amount
						meters.Cost("a", "USD", agent.shown)
					}
					meters.Turn("a", nil)
					if rapid.IntRange(0, 9).Draw(t, "the store fails") == 0 {
						return
					}
					book.add(take(meters))
					cleared = false
				}
				for range rapid.IntRange(1, 30).Draw(t, "steps") {
					switch rapid.IntRange(0, 6).Draw(t, "step") {
					case 0: // closed and opened again
						book.add(take(meters))
						agent.open()
						opened = true
						meters = newMeters(book.account, profile.reports)
					case 1: // a fork goes on
						book.add(take(meters))
						fork := &ledger{charges: book.charges, account: book.account}
						for i := range fork.account.Latest {
							fork.account.Latest[i].Amount = 0
						}
						book = fork
						agent.open()
						opened = true
						meters = newMeters(book.account, profile.reports)
					case 2: // what follows is less, or the clear would not be seen
						if !opened && agent.shown > 0.02 {
							before := agent.shown
							agent.clear()
							amount := before / 2
							agent.spend(amount)
							spent += amount
							meters.Cost("a", "USD", agent.shown)
							cleared = true
						}
					case 3: // killed: what was not stored is seen when the total is read again
						if profile.keeps && !cleared {
							take(meters)
							agent.open()
							opened = true
							meters = newMeters(book.account, profile.reports)
							turn(10)
						}
					default:
						turn(10)
					}
				}
				book.add(take(meters))
				require.InDelta(t, spent, total(book.charges, "USD"), 1e-6)
			})
		})
	}
}
