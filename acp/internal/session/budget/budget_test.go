package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/internal/session/budget"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"5 USD per day": "5 USD per day", " 2.50  eur per  session ": "2.5 EUR per session", "": "",
		"100 credits per day": "100 credits per day",
	} {
		b, err := budget.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, b.String())
		again, err := budget.Parse(b.String())
		require.NoError(t, err)
		require.Equal(t, b, again)
	}
	for _, text := range []string{"5", "5 USD", "5 USD per week", "0 USD per day", "-1 USD per day", "NaN USD per day",
		"Inf USD per day", "1e300 USD per day", "x USD per day", "5 \x1b[m per day", "5 USD a day"} {
		_, err := budget.Parse(text)
		require.ErrorContains(t, err, "is not a budget", text)
	}
}
