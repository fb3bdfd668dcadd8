package runner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Clause K1.
func TestCost(t *testing.T) {
	for response, want := range map[string]string{
		``:                                   "",
		`{"stopReason":"end"}`:               "",
		`{"_meta":{"acp-agent":{"cost":7}}}`: "",
		`{"_meta":{"acp-agent":{"cost":{"turn":{},"session":{"USD":1.5}}}}}`: "cost of the session 1.5000 USD, as reported by the agent",
		`{"_meta":{"acp-agent":{"cost":{"turn":{"USD":0.25},"session":{"USD":1.5,"EUR":2}}}}}`: "cost of the turn 0.2500 USD, " +
			"of the session 2.0000 EUR + 1.5000 USD, as reported by the agent",
		`{"_meta":{"acp-agent":{"cost":{"session":{"\u001b[2J":1}}}}}`: "cost of the session 1.0000 \ufffd[2J, as reported by the agent",
	} {
		require.Equal(t, want, Cost([]byte(response)), response)
	}
}
