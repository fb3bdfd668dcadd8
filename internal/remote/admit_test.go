package remote

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/cable"
)

// Clause N1.
func TestConnectionsNeedAToken(t *testing.T) {
	h := start(t, func(o *Options) { o.BehindProxy = true })
	secret := h.add("ana")
	for authorization, want := range map[string]int{
		"":                                    http.StatusUnauthorized,
		"Bearer":                              http.StatusUnauthorized,
		"Bearer " + secret + "x":              http.StatusUnauthorized,
		"Bearer ../" + secret:                 http.StatusUnauthorized,
		"Basic " + secret:                     http.StatusUnauthorized,
		secret:                                http.StatusUnauthorized,
		"bearer " + secret:                    http.StatusUpgradeRequired,
		"Bearer " + h.add("bob", t.TempDir()): http.StatusUpgradeRequired,
	} {
		status, _ := h.get(Path, authorization)
		require.Equal(t, want, status, authorization)
	}
	require.Contains(t, h.metrics.String(), "acp_agent_connections_rejected_total 8\n")
	require.Contains(t, h.audit.String(), `"rejected a connection without a valid token","from":"127.0.0.1:`)
	require.Contains(t, h.audit.String(), `"forwardedFor":""`)
	require.NotContains(t, h.log.String()+h.audit.String(), strings.TrimPrefix(secret, "ana."))

	defer h.damage("ana")()
	status, body := h.get(Path, "Bearer "+secret)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "its log says why")
	require.Contains(t, h.log.String(), "ana.json is damaged")
}

// Clauses N1, N4.
func TestUsersGetWhatTheirTokensSay(t *testing.T) {
	anas, bobs := t.TempDir(), t.TempDir()
	h := start(t)
	ana := connect(t, "ws://"+h.address, h.add("ana", anas)).initialize()
	bob := connect(t, "ws://"+h.address, h.add("bob", bobs)).initialize()
	const denied = "it is not in an allowed directory"
	require.Empty(t, ana.open(anas).Error)
	require.Contains(t, ana.open(bobs).Error.Message, denied)
	require.Contains(t, bob.open("/").Error.Message, denied)
	require.Contains(t, string(ana.call("session/list", map[string]any{}).Result), anas)
	require.NotContains(t, string(bob.call("session/list", map[string]any{}).Result), anas)
	require.Equal(t, 1, h.audit.Count("opened a session"))
	require.Equal(t, 2, h.audit.Count("could not open a session"))
}

func TestUserIsToldWhyNothingAnswers(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Serving = func(User) (acp.Options, error) { return acp.Options{}, errors.New("no agent today") }
	})
	e := connect(t, "ws://"+h.address, h.add("ana"))
	require.Contains(t, e.call("initialize", map[string]any{"protocolVersion": 1}).Error.Message, "no agent today")
	require.Error(t, e.end())
}

// Clause N1.
func TestRevokedTokenEndsConnections(t *testing.T) {
	h := start(t)
	url := "ws://" + h.address
	ana, bob := connect(t, url, h.add("ana")).initialize(), connect(t, url, h.add("bob")).initialize()
	repair := h.damage("ana")
	h.endRevoked()
	require.NotContains(t, h.log.String(), "revoked")
	repair()
	require.NoError(t, h.options.Tokens.Revoke("ana"))
	require.ErrorContains(t, ana.end(), "401")
	require.Contains(t, h.log.String(), `msg="the token was revoked" user=ana`)
	bob.lives()
}

// A connection with a new token ends those with the old one, without waiting until it is noticed.
func TestReplacedTokenEndsConnections(t *testing.T) {
	h := start(t)
	url := "ws://" + h.address
	old := connect(t, url, h.add("ana")).initialize()
	require.NoError(t, h.options.Tokens.Revoke("ana"))
	again := connect(t, url, h.add("ana")).initialize()
	require.ErrorContains(t, old.end(), "401")
	again.lives()
}

// Clause N2.
func TestLostConnectionIsResumed(t *testing.T) {
	h := start(t)
	wire := cable.Lay(t, "ws://"+h.address)
	e := connect(t, wire.URL, h.add("ana")).initialize()
	wire.Cut()
	e.lives()
	require.Equal(t, 1, h.log.Count("resumed a connection"))
	require.Equal(t, 1, h.audit.Count(`"connected"`))
}
