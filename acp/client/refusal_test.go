package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
)

func TestP1_ARefusalSaysWhatIsMissingAndWhatToDo(t *testing.T) {
	c, a := initialized(t, bare, client.Options{})
	_, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a", "/b")})
	require.ErrorContains(t, err, "does not advertise sessionCapabilities.additionalDirectories")
	require.ErrorContains(t, err, "open the session on one directory")
	require.Empty(t, a.take())
	_, err = c.LoadSession(t.Context(), "s", client.Setup{Roots: roots(t, "/a")})
	require.ErrorContains(t, err, "does not advertise loadSession")
}
