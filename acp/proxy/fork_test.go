package proxy_test

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
)

func TestA14_AForkIsNotToldOfTheTurnThatRuns(t *testing.T) {
	h := newHouse(t, abilities{Load: true}, proxy.Options{})
	v := h.enter()
	first := roots(t, 1)
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "one")
	ended := make(chan error, 1)
	go func() {
		_, err := v.Prompt(t.Context(), s.ID, sdk.TextBlock("hang"))
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(h.history(s.ID)) == 4 }, patience, 1e6, "the turn runs")
	fork, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Equal(t, "agent N:~one+two", v.say(fork.ID, "two"))
	require.NoError(t, v.Cancel(t.Context(), s.ID))
	require.NoError(t, <-ended)
}
