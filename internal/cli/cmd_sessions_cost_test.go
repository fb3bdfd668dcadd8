package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A folder's sums are marked if an agent there reports less, and so is the total. Others are not.
func TestSessionsCostMarksIncompleteFolders(t *testing.T) {
	line := func(name string, turns int, incomplete bool) sessions.CostLine {
		return sessions.CostLine{Name: name, Turns: turns, Cost: map[string]float64{"USD": 1},
			Tokens: map[sessionstore.Meter]float64{sessionstore.InputMeter: 7}, CostIncomplete: incomplete}
	}
	var out strings.Builder
	require.NoError(t, printCosts(&out, sessions.Costs{
		Lines: []sessions.CostLine{line("mixed", 2, true), line("priced", 1, false)}, Total: line("", 3, true)}))
	for _, want := range []string{"mixed  1.0000 USD*  2  7", "priced  1.0000 USD  1  7", "total  1.0000 USD*  3  7"} {
		require.Regexp(t, strings.ReplaceAll(regexp.QuoteMeta(want), "  ", ` +`)+" ", out.String())
	}
}
