package serve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/cable"
)

// installation is servers with the same tokens that know each other, behind a proxy.
type installation struct {
	servers []*host
	cable   *cable.Cable // from clients to the proxy
	// to is the server to which the proxy sends new requests.
	to atomic.Int32
}

// install starts n servers on which change has the last word.
func install(t *testing.T, n int, change ...func(*Options)) *installation {
	t.Helper()
	var all installation
	listening := make(chan struct{})
	peers := Peers{urls: make([]*url.URL, n), lookup: net.DefaultResolver.LookupHost}
	lookup := peers.lookup
	peers.lookup = func(ctx context.Context, host string) ([]string, error) {
		<-listening
		return lookup(ctx, host)
	}
	dir := t.TempDir()
	for range n {
		all.servers = append(all.servers, start(t, append(change, func(o *Options) {
			o.Tokens, o.Peers = NewTokens(dir), peers
		})...))
		all.servers[len(all.servers)-1].dir = dir
	}
	for i, s := range all.servers {
		peers.urls[i] = &url.URL{Scheme: "http", Host: s.address}
	}
	close(listening)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(peers.urls[all.to.Load()])
	}})
	t.Cleanup(proxy.Close)
	all.cable = cable.Lay(t, "ws"+strings.TrimPrefix(proxy.URL, "http"))
	return &all
}

// A connection that comes to another server goes on, with the sessions of the one that has it.
func TestConnectionComesToAnotherServer(t *testing.T) {
	all := install(t, 3)
	dir := t.TempDir()
	e := connect(t, all.cable.URL, all.servers[0].add("ana", dir)).initialize()
	require.Empty(t, e.open(dir).Error)
	for _, to := range []int32{2, 1, 0} {
		all.to.Store(to)
		all.cable.Cut()
		e.lives()
	}
	require.Equal(t, 1, all.servers[0].acp.Used().Sessions)
	require.Eventually(t, func() bool { // it is logged when the connection that was cut has ended
		return strings.Contains(all.servers[2].log.String(), "passed a connection on")
	}, time.Minute, time.Millisecond)
	require.NotContains(t, all.servers[0].log.String(), "passed a connection on")
}

// The server that has the connection is asked although it accepts no new ones.
func TestConnectionOfAServerThatEnds(t *testing.T) {
	all := install(t, 2)
	e := connect(t, all.cable.URL, all.servers[0].add("ana")).initialize()
	all.to.Store(1)
	all.servers[0].draining.Store(true)
	all.cable.Cut()
	e.lives()
}

func TestConnectionOfAnotherUser(t *testing.T) {
	all := install(t, 3)
	secret := all.servers[0].add("ana")
	all.to.Store(1)
	// Nobody gets the connection of somebody else.
	socket, response, err := websocket.Dial(t.Context(), all.cable.URL+Path, &websocket.DialOptions{
		HTTPHeader:   http.Header{"Authorization": {"Bearer " + secret}},
		Subprotocols: []string{"acp-agent"},
	})
	require.NoError(t, err)
	defer socket.CloseNow()
	bob := all.servers[1].add("bob")
	_, response, err = websocket.Dial(t.Context(), "ws://"+all.servers[2].address+Path,
		&websocket.DialOptions{HTTPHeader: http.Header{
			"Authorization": {"Bearer " + bob}, "Acp-Agent-Received": {"0"},
			"Acp-Connection-Id": {response.Header.Get("Acp-Connection-Id")},
		}})
	require.Error(t, err)
	require.Equal(t, http.StatusGone, response.StatusCode)
	require.NoError(t, socket.Ping(socket.CloseRead(t.Context())))
}
