package sessions

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// used stores a session of an agent that has used something.
func used(t *testing.T, store *sqlite.Store, agent, dir string, charges ...sessionstore.Charge) sessionstore.ID {
	t.Helper()
	id := sessionstore.NewID()
	lease, err := store.Create(t.Context(), sessionstore.Session{ID: id, Title: "title",
		Agent: sessionstore.Agent{Kind: "proxy", Profile: agent}, Keys: keys(t, dir)})
	require.NoError(t, err)
	require.NoError(t, store.Charge(t.Context(), lease, charges))
	return id
}

func on(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 5, 0, 0, time.UTC) }

func paid(at time.Time, unit string, amount float64) sessionstore.Charge {
	return sessionstore.Charge{At: at, Meter: sessionstore.CostMeter, Unit: unit, Amount: amount, Reading: amount}
}

func counted(at time.Time, m sessionstore.Meter, n float64) sessionstore.Charge {
	return sessionstore.Charge{At: at, Meter: m, Amount: n}
}

// Clause K1.
func TestReadCosts(t *testing.T) {
	store := newStore(t)
	app, lib := filepath.Join(dirtest.New(t), "app"), dirtest.New(t)
	one := used(t, store, "claude", app, paid(on(1, 12), "USD", 1), counted(on(1, 12), sessionstore.TurnMeter, 2),
		counted(on(1, 12), sessionstore.InputMeter, 10), paid(on(2, 23), "USD", 0.5), paid(on(2, 23), "EUR", 3))
	used(t, store, "claude", lib, paid(on(3, 1), "USD", 4), counted(on(3, 1), sessionstore.TurnMeter, 1),
		counted(on(3, 1), sessionstore.InputMeter, 7))
	used(t, store, "codex", lib, counted(on(3, 1), sessionstore.TurnMeter, 3), counted(on(3, 1), sessionstore.OutputMeter, 5))
	imported := paid(on(3, 2), "USD", 0)
	imported.Mark = sessionstore.BeforeMark
	used(t, store, "opencode", lib, imported, paid(on(3, 3), "USD", 0.25), counted(on(3, 3), sessionstore.TurnMeter, 1))
	read := func() Costs {
		c, err := ReadCosts(t.Context(), store)
		require.NoError(t, err)
		return c
	}
	names := func(c Costs) (all []string) {
		for _, l := range c.Lines {
			all = append(all, l.Name)
		}
		return all
	}

	c := read()
	require.Equal(t, []string{app, lib}, names(c))
	require.Equal(t, map[string]float64{"USD": 1.5, "EUR": 3}, c.Lines[0].Cost)
	require.Equal(t, 2, c.Lines[0].Turns)
	require.False(t, c.Lines[0].CostIncomplete || c.Lines[0].TokensIncomplete)
	require.True(t, c.Lines[1].CostIncomplete && c.Lines[1].TokensIncomplete)
	require.Equal(t, map[string]float64{"USD": 5.75, "EUR": 3}, c.Total.Cost)
	require.Equal(t, 7, c.Total.Turns)
	require.Equal(t, []string{"1 session had been used before acp-agent could count",
		"codex reports tokens, without their price (3 turns)", "opencode reports no tokens (1 turn)"}, c.Notes)

	require.NoError(t, store.Delete(t.Context(), one))
	c = read()
	require.Equal(t, []string{lib}, names(c))
	require.NotContains(t, c.Total.Cost, "EUR", "it is deleted with the session")
}

// What a session has used is copied and exported with it. An import of what is there already does
// not count twice.
//
// Clause K1.
func TestCostsAreCopiedOnce(t *testing.T) {
	store, other, dir := newStore(t), newStore(t), dirtest.New(t)
	id := used(t, store, "claude", dir, paid(on(1, 12), "USD", 1.5), counted(on(1, 12), sessionstore.TurnMeter, 1))
	charges, err := store.Charges(t.Context(), id)
	require.NoError(t, err)
	_, err = Copy(t.Context(), store, other, func(Counts) {})
	require.NoError(t, err)
	copied, err := other.Charges(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, charges, copied)

	one, err := store.Get(t.Context(), id)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, WriteJSON(t.Context(), &file, store, one))
	total := func(in *sqlite.Store) float64 {
		c, err := ReadCosts(t.Context(), in)
		require.NoError(t, err)
		return c.Total.Cost["USD"]
	}
	third := newStore(t)
	i := Import{Name: "file", MaxLine: 1 << 20}
	for range 2 {
		_, _, err = i.Store(t.Context(), third, bytes.NewReader(file.Bytes()))
		require.NoError(t, err)
		require.InDelta(t, 1.5, total(third), 0)
	}
	account, err := third.Account(t.Context(), id)
	require.NoError(t, err)
	for _, c := range account.Latest {
		require.Zero(t, c.Reading, "a new session of the agent begins to count at zero")
	}
	bad := bytes.Replace(file.Bytes(), []byte(`"amount":1.5`), []byte(`"amount":-1.5`), 1)
	_, _, err = i.Store(t.Context(), third, bytes.NewReader(bad))
	require.ErrorContains(t, err, "line 1")
}
