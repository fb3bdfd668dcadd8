package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

type charge = sessionstore.Charge

func ledgerTests() []testCase {
	return []testCase{
		{"K1/charges are kept in their order", keepCharges},
		{"K1/sums of charges", sumCharges},
		{"K1/the account of a session", account},
		{"K1/a fork begins with the readings of its source", forkReadings},
		{"K1/charges are deleted with their session", deleteCharges},
		{"K1/charges of a restored session", restoreCharges},
		{"K1/invalid charges", invalidCharges},
	}
}

// spend stores charges of a session.
func spend(t *testing.T, s store, l sessionstore.Lease, charges ...charge) {
	t.Helper()
	require.NoError(t, s.Charge(t.Context(), l, charges))
}

// at returns a time on 2 January 2026.
func at(hour, minute int) time.Time {
	return time.Date(2026, 1, 2, hour, minute, 3, 4_000_000, time.UTC)
}

// usd returns a charge in US dollars.
func usd(at time.Time, amount, reading float64, m sessionstore.Mark) charge {
	return charge{At: at, Source: "a", Meter: sessionstore.CostMeter, Unit: "USD", Amount: amount,
		Reading: reading, Mark: m}
}

func tokens(at time.Time, amount float64) charge {
	return charge{At: at, Meter: sessionstore.InputMeter, Amount: amount}
}

// of returns charges as the store yields those of a session.
func of(id string, charges ...charge) []charge {
	for i := range charges {
		charges[i].Session, charges[i].Agent = sessionstore.ID(id), explore()
	}
	return charges
}

func charges(t *testing.T, s store, id string) []charge {
	t.Helper()
	all, err := s.Charges(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	return all
}

func sums(t *testing.T, s store, q sessionstore.ChargeQuery) []charge {
	t.Helper()
	all, err := s.Sums(t.Context(), q)
	require.NoError(t, err)
	return all
}

func keepCharges(t *testing.T, s store) {
	lease := Create(t, s, "one")
	before := get(t, s, "one")
	require.Empty(t, charges(t, s, "one"))
	first := []charge{usd(at(9, 0), 1.25, 1.25, ""), tokens(at(9, 0), 1<<49)}
	second := usd(at(8, 0), 0.1, 0.1, sessionstore.ResetMark) // the clock was set back
	spend(t, s, lease, first...)
	spend(t, s, lease, second)
	spend(t, s, lease)
	require.Equal(t, of("one", first[0], first[1], second), charges(t, s, "one"))
	require.Equal(t, before, get(t, s, "one"), "nothing else changes")

	spend(t, s, lease, charge{Meter: sessionstore.TurnMeter, Amount: 1})
	all := charges(t, s, "one")
	require.False(t, all[len(all)-1].At.IsZero(), "the store's clock")
	_, err := s.Charges(t.Context(), "unknown")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func sumCharges(t *testing.T, s store) {
	one, two := Create(t, s, "one"), Create(t, s, "two")
	eur := usd(at(10, 0), 4, 4, "")
	eur.Unit = "EUR"
	spend(t, s, one, usd(at(9, 0), 1, 1, ""), usd(at(9, 14), 0.5, 1.5, ""), usd(at(9, 15), 2, 3.5, ""),
		usd(at(9, 16), 0.25, 0.25, sessionstore.ResetMark), eur, tokens(at(9, 0), 7))
	spend(t, s, two, usd(at(12, 0), 8, 8, ""))

	sum := func(id string, c charge, amount float64) charge {
		c.Source, c.Reading, c.Amount = "", 0, amount
		return of(id, c)[0]
	}
	reset := usd(at(9, 16), 0, 0, sessionstore.ResetMark)
	require.Equal(t, []charge{
		sum("one", usd(at(9, 0), 0, 0, ""), 3.5), sum("one", reset, 0.25), sum("one", eur, 4),
		sum("one", tokens(at(9, 0), 0), 7), sum("two", usd(at(12, 0), 0, 0, ""), 8),
	}, sums(t, s, sessionstore.ChargeQuery{}), "currencies and marks are not added")
	require.Equal(t, []charge{
		sum("one", usd(at(9, 0), 0, 0, ""), 3.5), sum("one", reset, 0.25), sum("one", eur, 4),
	}, sums(t, s, sessionstore.ChargeQuery{Session: "one", Meter: sessionstore.CostMeter}))
	require.Equal(t, []charge{
		sum("one", usd(at(9, 15), 0, 0, ""), 2), sum("one", reset, 0.25), sum("one", eur, 4),
		sum("two", usd(at(12, 0), 0, 0, ""), 8),
	}, sums(t, s, sessionstore.ChargeQuery{Since: at(9, 15), Meter: sessionstore.CostMeter}))
	require.Empty(t, sums(t, s, sessionstore.ChargeQuery{Session: "unknown"}))
	require.Empty(t, sums(t, s, sessionstore.ChargeQuery{Since: at(13, 0)}))
}

func accountOf(t *testing.T, s store, id string) sessionstore.Account {
	t.Helper()
	a, err := s.Account(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	return a
}

func account(t *testing.T, s store) {
	lease := Create(t, s, "one")
	require.Empty(t, accountOf(t, s, "one").Latest)
	require.False(t, accountOf(t, s, "one").Before)
	spend(t, s, lease, usd(at(9, 0), 1, 1, ""), tokens(at(9, 0), 7))
	spend(t, s, lease, usd(at(8, 0), 2, 3, ""))
	require.Equal(t, sessionstore.Account{Latest: of("one", tokens(at(9, 0), 7), usd(at(8, 0), 2, 3, ""))},
		accountOf(t, s, "one"))
	spend(t, s, lease, usd(at(9, 0), 0, 3, sessionstore.BeforeMark))
	require.True(t, accountOf(t, s, "one").Before)

	imported := listedByAgent(t, "its own")
	require.Equal(t, 1, importSessions(t, s, imported))
	require.True(t, accountOf(t, s, string(imported.ID)).Before)
	fork(t, s, string(imported.ID), sessionstore.Session{ID: "copy"})
	require.True(t, accountOf(t, s, "copy").Before)
}

func forkReadings(t *testing.T, s store) {
	lease := Create(t, s, "one")
	spend(t, s, lease, usd(at(9, 0), 1, 1, ""), usd(at(9, 1), 2, 3, sessionstore.ResetMark))
	fork(t, s, "one", sessionstore.Session{ID: "fork"})
	readings := charges(t, s, "fork")
	require.Len(t, readings, 1)
	readings[0].At = at(9, 1)
	require.Equal(t, of("fork", usd(at(9, 1), 0, 3, "")), readings)
	fork(t, s, "one", sessionstore.Session{ID: "foreign", Agent: sessionstore.Agent{Kind: "model"}})
	require.Empty(t, charges(t, s, "foreign"))
	require.Len(t, charges(t, s, "one"), 2)
}

func deleteCharges(t *testing.T, s store) {
	spend(t, s, Create(t, s, "one"), usd(at(9, 0), 1, 1, ""))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.Empty(t, sums(t, s, sessionstore.ChargeQuery{}))
	Create(t, s, "one")
	require.Empty(t, charges(t, s, "one"))
	lease := activate(t, s, "one", sessionstore.Activation{})
	spend(t, s, lease, usd(at(9, 0), 1, 1, ""))
	_, err := s.Move(t.Context(), lease, Keys(t, "shop"))
	require.NoError(t, err)
	require.Len(t, charges(t, s, "one"), 1, "they move with the session")
}

func restoreCharges(t *testing.T, s store) {
	n := foreign(t, "one")
	kept := []charge{usd(at(9, 0), 1, 1, ""), tokens(at(9, 0), 7), usd(at(9, 1), 2, 3, sessionstore.PartialMark)}
	stored, err := s.Restore(t.Context(), n, nil, of("other", kept...))
	require.NoError(t, err)
	require.True(t, stored)
	require.Equal(t, of("one", kept...), charges(t, s, "one"))
	n.Updated = n.Updated.Add(time.Hour)
	stored, err = s.Restore(t.Context(), n, nil, of("one", kept[:1]...))
	require.NoError(t, err)
	require.True(t, stored)
	require.Equal(t, of("one", kept[:1]...), charges(t, s, "one"), "those of the copy, once")
}

func invalidCharges(t *testing.T, s store) {
	lease := Create(t, s, "one")
	good := usd(at(9, 0), 1, 1, "")
	for _, change := range []func(*charge){
		func(c *charge) { c.Amount = math.NaN() },
		func(c *charge) { c.Amount = math.Inf(1) },
		func(c *charge) { c.Amount = -1 },
		func(c *charge) { c.Amount = 1e300 },
		func(c *charge) { c.Reading = math.NaN() },
		func(c *charge) { c.Reading = -0.5 },
		func(c *charge) { c.Unit = "US\x00D" },
		func(c *charge) { c.Unit = "\x1b[31m" },
		func(c *charge) { c.Unit = "usd" },
		func(c *charge) { c.Unit = string(make([]byte, 1000)) },
		func(c *charge) { c.Source = "\xff" },
		func(c *charge) { c.Meter = "" },
	} {
		bad := good
		change(&bad)
		require.Error(t, s.Charge(t.Context(), lease, []charge{good, bad}), "%+v", bad)
	}
	require.Empty(t, charges(t, s, "one"), "all or none")
}
