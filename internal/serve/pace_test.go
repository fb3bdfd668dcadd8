package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// paced lets a user send so many requests, and then one in an hour.
func (h *host) paced(user string, burst int) {
	requests := h.quota(user).requests
	requests.SetLimit(rate.Every(time.Hour))
	requests.SetBurst(burst)
}

// Requests of a user who sends too many wait, over all connections, and those of others do not.
//
// Clause N6.
func TestRequestsArePaced(t *testing.T) {
	h := start(t)
	ana, bob := h.add("ana"), h.add("bob")
	h.paced("ana", 5)
	one := connect(t, "ws://"+h.address, ana).initialize()
	other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
	one.lives() // the fifth: each connection counts too
	answered := make(chan string, 2)
	for _, e := range []*editor{one, other} {
		_, err := e.in.Write([]byte(rawrpc.Request(99, "session/list", map[string]any{}) + "\n"))
		require.NoError(t, err)
		go func() {
			line, _ := e.lines.ReadString('\n')
			answered <- line
		}()
	}
	connect(t, "ws://"+h.address, bob).initialize().lives()
	select {
	case line := <-answered:
		t.Fatal("answered although there were too many: ", line)
	default:
	}
	require.NoError(t, h.options.Tokens.Revoke("ana"))
	h.endRevoked()
	for range 2 {
		require.Contains(t, <-answered, "closed the connection")
	}
}

// Requests of the page count too, whatever they ask for.
func TestRequestsOfThePageArePaced(t *testing.T) {
	h := start(t, func(o *Options) { o.Page = true })
	h.add("ana")
	phone := h.pair("ana", Watch)
	before := h.quota("ana").requests.Tokens()
	h.paced("ana", int(before))
	for _, path := range []string{"/me", "/api/sessions", "/api/facets"} {
		require.Equal(t, 200, h.post(path, "http://"+h.address, "", phone).StatusCode, path)
	}
	require.Less(t, h.quota("ana").requests.Tokens(), before-2)
}

// A large request counts as several.
func TestLargeRequestsCountAsSeveral(t *testing.T) {
	h := start(t)
	secret := h.add("ana")
	h.paced("ana", 100)
	ana := connect(t, "ws://"+h.address, secret).initialize()
	before := h.quota("ana").requests.Tokens()
	require.NotEmpty(t, ana.call("session/prompt", map[string]any{"sessionId": strings.Repeat("a", 5*requestUnit)}).Error)
	require.Less(t, h.quota("ana").requests.Tokens(), before-5)
}
