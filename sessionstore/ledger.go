package sessionstore

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Meter names the thing that a [Charge] counts.
type Meter string

// All meters.
const (
	// CostMeter counts money, or another unit such as "credits".
	CostMeter Meter = "cost"
	// TurnMeter counts the turns that an agent has answered.
	TurnMeter Meter = "turns"
	// These count tokens. Input is without what came from a cache or was written to it.
	InputMeter       Meter = "input"
	OutputMeter      Meter = "output"
	CachedReadMeter  Meter = "cachedRead"
	CachedWriteMeter Meter = "cachedWrite"
	ThoughtMeter     Meter = "thought"
)

// TokenMeters returns the meters that count tokens.
func TokenMeters() []Meter {
	return []Meter{InputMeter, OutputMeter, CachedReadMeter, CachedWriteMeter, ThoughtMeter}
}

// Mark says what is special about a [Charge].
type Mark string

// All marks.
const (
	// ResetMark says that the agent's counter had begun again at zero.
	ResetMark Mark = "reset"
	// PartialMark says that the amount may be less than what was used, because the agent's counter
	// cannot be split.
	PartialMark Mark = "partial"
	// BeforeMark says that the session was used before its charges were kept.
	BeforeMark Mark = "before"
)

// Charge is the use of a session between two readings of a meter. Its JSON is without what is not
// true of an imported copy, whose agent counts from zero.
type Charge struct {
	// Session and Agent are set by the store when it yields the charge.
	Session ID    `json:"-"`
	Agent   Agent `json:"-"`
	// At is the time of the reading, in UTC with millisecond precision. If it is zero, the store
	// uses its clock.
	At time.Time `json:"at"`
	// Source identifies the agent's own session whose counter was read. May be empty.
	Source string `json:"-"`
	Meter  Meter  `json:"meter"`
	// Unit is the currency or unit of a cost, and empty for other meters.
	Unit string `json:"unit,omitempty"`
	// Amount is the use since the reading before.
	Amount float64 `json:"amount"`
	// Reading is the value that the agent's counter showed, 0 if it has none.
	Reading float64 `json:"-"`
	Mark    Mark    `json:"mark,omitempty"`
}

// Account has the known state of a session's counters.
type Account struct {
	// Latest has the latest charge of each meter and unit.
	Latest []Charge
	// Before reports whether the session may have been used before its charges were kept: it is
	// from its agent's own list, or has charges with BeforeMark.
	Before bool
}

// ChargeQuery selects charges.
type ChargeQuery struct {
	// Session selects those of one session; "" those of all.
	Session ID
	// Meter selects those of one meter; "" those of all.
	Meter Meter
	// Since selects those at or after a time; the zero time those of all times.
	Since time.Time
}

const (
	// MaxAmount is the largest amount and reading of a charge. No agent uses that much, and sums of
	// many are finite.
	MaxAmount = 1e15
	// maxUnit is the length of the longest unit, in bytes.
	maxUnit = 32
)

// ValidAmount reports whether a charge may have this amount or reading.
func ValidAmount(a float64) bool { return a >= 0 && a <= MaxAmount } // not NaN

// CleanUnit returns a currency or unit as charges have it. It returns false if the text cannot be
// one.
func CleanUnit(unit string) (string, bool) {
	unit = strings.TrimSpace(unit)
	if len(unit) == 3 {
		unit = strings.ToUpper(unit)
	}
	isUnit := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune(" -_.$€£¥%", c)
	}
	strange := strings.ContainsFunc(unit, func(c rune) bool { return !isUnit(c) })
	return unit, unit != "" && len(unit) <= maxUnit && !strange
}

// ValidateCharges returns an error unless all charges can be stored.
func ValidateCharges(charges []Charge) error {
	for _, c := range charges {
		unit, ok := CleanUnit(c.Unit)
		switch {
		case !ValidAmount(c.Amount) || !ValidAmount(c.Reading) || math.Signbit(c.Amount):
			return fmt.Errorf("a charge cannot have the amount %v and the reading %v", c.Amount,
				c.Reading)
		case c.Meter == "" || len(c.Meter) > maxUnit || len(c.Mark) > maxUnit || len(c.Source) > 64:
			return errors.New("a charge needs a meter, and short names")
		case c.Unit != "" && (!ok || unit != c.Unit):
			return fmt.Errorf("a charge cannot have the unit %q", c.Unit)
		}
		for _, text := range []string{string(c.Meter), string(c.Mark), c.Source} {
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				return fmt.Errorf("%q is not a name", text)
			}
		}
	}
	return nil
}
