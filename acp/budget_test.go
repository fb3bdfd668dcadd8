package acp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]string{
		"5 USD per day": "5 USD per day", " 2.50  eur per  session ": "2.5 EUR per session", "": "",
		"100 credits per day": "100 credits per day",
	} {
		b, err := acp.ParseBudget(text)
		require.NoError(t, err)
		require.Equal(t, want, b.String())
		again, err := acp.ParseBudget(b.String())
		require.NoError(t, err)
		require.Equal(t, b, again)
	}
	for _, text := range []string{"5", "5 USD", "5 USD per week", "0 USD per day", "-1 USD per day", "NaN USD per day",
		"Inf USD per day", "1e300 USD per day", "x USD per day", "5 \x1b[m per day", "5 USD a day"} {
		_, err := acp.ParseBudget(text)
		require.ErrorContains(t, err, "is not a budget", text)
	}
}

// A session says when a budget is used up, and asks before the next prompt.
//
// Clause K1.
func TestBudget(t *testing.T) {
	store, dir := memstore.New(t), folder(t)
	within, err := workspace.ParseDir(dir)
	require.NoError(t, err)
	budgets := map[string]acp.Budget{}
	for name, text := range map[string]string{"day": "5 USD per day", "session": "5 USD per session"} {
		budgets[name], err = acp.ParseBudget(text)
		require.NoError(t, err)
	}
	options := func(b acp.Budget) acp.Options {
		b.Within = within
		return acp.Options{Store: store, Budgets: func(cwd workspace.Dir) []acp.Budget {
			require.Equal(t, within, cwd)
			return []acp.Budget{b}
		}}
	}
	c := connect(t, options(budgets["session"]))
	c.initialize()
	id := c.open(dir)
	require.NotContains(t, strings.Join(c.texts(id, "spend 4.5"), ""), "budget")
	require.NotContains(t, strings.Join(c.texts(id, "spend 100 EUR"), ""), "budget", "currencies are not added")
	require.Contains(t, strings.Join(c.texts(id, "spend 5.25"), ""), "The budget of 5 USD per session is used up: 5.2500 USD")

	c.permit("reject-once")
	require.Contains(t, strings.Join(c.texts(id, "spend 6"), ""), "The agent was not given this prompt")
	require.Len(t, c.questions(), 1)
	require.Contains(t, string(c.questions()[0].Params), "The budget of 5 USD per session is used up")
	c.permit("allow-once")
	require.NotContains(t, strings.Join(c.texts(id, "spend 6"), ""), "used up", "it was used up before")
	c.permit("allow-always")
	c.texts(id, "spend 7")
	asked := len(c.questions())
	require.Equal(t, 3, asked)
	c.texts(id, "spend 8")
	require.Len(t, c.questions(), asked, "no more today")
	require.Contains(t, strings.Join(c.texts(id, "/roots"), ""), dir, "acp-agent's own commands cost nothing")
	sums, _ := spentIn(t, store, cost(id))
	require.InDelta(t, 8, sums["USD"], 1e-9)

	other := connect(t, options(budgets["day"]))
	other.initialize()
	second := other.open(dir)
	other.permit("reject-once")
	require.Contains(t, strings.Join(other.texts(second, "say hello"), ""), "not given this prompt", "sessions of a day count together")

	other.permit("cancelled")
	require.Contains(t, strings.Join(other.texts(second, "say hello"), ""), "not given this prompt")
}
