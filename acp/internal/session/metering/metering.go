// Package metering counts what a session uses, from what its agent reports.
//
// Agents report the running total of a session's cost, and most report tokens for each turn. Some
// totals survive when a session is opened again or forked, others begin again at zero. Meters are
// told each reading, and return charges; a [Spending] stores those of a session.
package metering

import (
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// circumstances of a reading decide what it says.
type circumstances struct {
	first    bool // since the agent's session was opened
	restarts bool // the agent's counter is known to begin at zero whenever a session is opened
	before   bool // the session may have been used before anything was known of it
	idle     bool // there was no prompt since the session was opened
}

// counter is an agent's counter of one meter and unit.
type counter struct {
	known bool
	last  float64 // what it last showed
}

// count returns what was used between the last reading of a counter and this one. ok is false if
// the reading says nothing.
func (c counter) count(
	reading float64, now circumstances,
) (amount float64, mark sessionstore.Mark, ok bool) {
	switch {
	case reading == 0 || !sessionstore.ValidAmount(reading):
		return 0, "", false
	case !c.known && !now.before:
		return reading, "", true
	case !c.known && now.idle:
		return 0, sessionstore.BeforeMark, true
	case !c.known && !now.restarts:
		return 0, sessionstore.PartialMark, true
	case !c.known, now.first && now.restarts:
		return reading, "", true
	case reading >= c.last:
		return reading - c.last, "", true
	case now.first:
		return reading, "", true
	}
	return reading, sessionstore.ResetMark, true
}

// key names a counter.
type key struct {
	meter sessionstore.Meter
	unit  string
}

// meters count what a session uses. They must not be used concurrently.
type meters struct {
	reports  backend.Usage
	before   bool
	counters map[key]counter
	read     map[key]string        // the agent's session of which a counter was read, since it was opened
	prompted bool                  // the agent was given a prompt
	pending  []sessionstore.Charge // that were not stored
}

// newMeters returns the meters of a session that was opened. a has what was known of it before.
func newMeters(a sessionstore.Account, reports backend.Usage) *meters {
	m := &meters{reports: reports, before: a.Before, counters: map[key]counter{},
		read: map[key]string{}}
	for _, c := range a.Latest {
		if c.Reading > 0 {
			m.counters[key{c.Meter, c.Unit}] = counter{known: true, last: c.Reading}
		}
	}
	return m
}

// maxCounters is how many counters a session has. An agent may report any currency.
const maxCounters = 20

// Cost counts a reading of what the session has cost, from the agent's session source.
func (m *meters) Cost(source, currency string, amount float64) {
	unit, ok := sessionstore.CleanUnit(currency)
	k := key{sessionstore.CostMeter, unit}
	if ok && (m.counters[k].known || len(m.counters) < maxCounters) {
		m.counted(source, k, amount)
	}
}

// counted counts a reading of a counter.
func (m *meters) counted(source string, k key, reading float64) {
	before, read := m.read[k]
	now := circumstances{
		first: !read || before != source, restarts: m.reports.Restarts,
		before: m.before && len(m.counters) == 0, idle: !m.prompted,
	}
	amount, mark, ok := m.counters[k].count(reading, now)
	if !ok {
		return
	}
	m.counters[k], m.read[k] = counter{known: true, last: reading}, source
	if amount == 0 && mark == "" {
		return
	}
	m.add(sessionstore.Charge{Source: source, Meter: k.meter, Unit: k.unit, Amount: amount,
		Reading: reading, Mark: mark})
}

// Turn counts a turn that has ended, and the tokens that its response reports, by meter.
func (m *meters) Turn(source string, tokens map[sessionstore.Meter]float64) {
	m.add(sessionstore.Charge{Source: source, Meter: sessionstore.TurnMeter, Amount: 1})
	for _, meter := range sessionstore.TokenMeters() {
		n, ok := tokens[meter]
		switch {
		case !ok || !sessionstore.ValidAmount(n) || n == 0:
		case m.reports.Tokens == backend.TokensOfTurn:
			m.add(sessionstore.Charge{Source: source, Meter: meter, Amount: n})
		case m.reports.Tokens == backend.TokensOfSession:
			m.counted(source, key{meter, ""}, n)
		}
	}
}

// add adds to what is pending. Readings until that is stored are one charge.
func (m *meters) add(c sessionstore.Charge) {
	i := slices.IndexFunc(m.pending, func(p sessionstore.Charge) bool {
		return p.Meter == c.Meter && p.Unit == c.Unit && p.Mark == c.Mark && p.Source == c.Source
	})
	if i >= 0 {
		c.Amount += m.pending[i].Amount
		m.pending = slices.Delete(m.pending, i, i+1) // the latest is the last one
	}
	c.Amount = min(c.Amount, sessionstore.MaxAmount)
	m.pending = append(m.pending, c)
}

// Sum adds the amounts of a meter, by unit.
func Sum(charges []sessionstore.Charge, meter sessionstore.Meter) map[string]float64 {
	sums := map[string]float64{}
	for _, c := range charges {
		if c.Meter == meter && c.Amount > 0 {
			sums[c.Unit] += c.Amount
		}
	}
	return sums
}
