package hosts_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	hostproxy "github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network with names, in which every connection leads to one server.
type world struct {
	server *httptest.Server
	names  map[string][]string // with a trailing dot

	mu       sync.Mutex
	looked   []string
	dialled  []string
	refusals []hostproxy.Refusal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{names: map[string][]string{"a.com.": {"93.184.216.34"}, "x.example.com.": {"2606:4700::1"}}}
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(out, r, "http://evil.com/", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(out, "host=%s path=%s body=%s auth=%q from=%q", r.Host, r.URL.Path, body,
			r.Header.Get("Proxy-Authorization"), r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) options(list hostproxy.Hosts) hostproxy.Options {
	o := hostproxy.Options{Hosts: list, Refused: func(r hostproxy.Refusal) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusals = append(w.refusals, r)
	}}
	return o.WithNetwork(func(_ context.Context, name string) (addrs []netip.Addr, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.looked = append(w.looked, name)
		for _, a := range w.names[name] {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		if len(addrs) == 0 {
			return nil, errors.New("no such host")
		}
		return addrs, nil
	}, func(ctx context.Context, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, address)
		w.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
	})
}

// serve returns the address of a proxy.
func serve(t *testing.T, o hostproxy.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := hostproxy.New(o)
	t.Cleanup(p.Close)
	p.Serve(l)
	return l.Addr().String()
}

// client is a connection to a proxy.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, proxy string) client {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// ask sends text, and returns the status and body of the answer.
func (c client) ask(t *testing.T, text string) (status int, body string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		return 0, err.Error()
	}
	if method == http.MethodConnect && res.StatusCode == http.StatusOK {
		return res.StatusCode, ""
	}
	content, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(content)
}

// Clause X7.
func TestProxyConnectsOnlyToTheList(t *testing.T) {
	w := newWorld(t)
	proxy := serve(t, w.options(hosts(t, "a.com,*.example.com")))

	const get = "GET /inside HTTP/1.1\r\nHost: a.com\r\n\r\n"
	for _, early := range []string{"", get} {
		c := dial(t, proxy)
		status, _ := c.ask(t, "CONNECT a.com:443 HTTP/1.1\r\nHost: evil.com\r\n\r\n"+early)
		require.Equal(t, http.StatusOK, status)
		_, body := c.ask(t, strings.TrimSuffix(get, early))
		require.Contains(t, body, "path=/inside")
	}

	status, body := dial(t, proxy).ask(t, "GET http://x.example.com/p HTTP/1.1\r\nHost: evil.com\r\n"+
		"Proxy-Authorization: Basic eDp5\r\n\r\n")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `host=x.example.com path=/p body= auth="" from=""`, body)

	for range 2 {
		status, body = dial(t, proxy).ask(t, "CONNECT evil.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n")
		require.Equal(t, http.StatusForbidden, status)
		require.Contains(t, body, "does not allow evil.com:443, because it is not in sandboxHosts")
	}
	status, _ = dial(t, proxy).ask(t, "GET http://evil.com:8080/ HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, []string{"a.com.", "a.com.", "x.example.com."}, w.looked, "a refused name is not resolved")
	require.Equal(t, []string{"93.184.216.34:443", "93.184.216.34:443", "[2606:4700::1]:80"}, w.dialled)
	require.Equal(t, []hostproxy.Refusal{{Target: "evil.com:443", Entry: "evil.com"},
		{Target: "evil.com:8080", Entry: "evil.com:8080"}}, w.refusals, "each once")
}

// Requests that two programs could read in different ways.
//
// Clause X7.
func TestProxyRefusesWhatIsAmbiguous(t *testing.T) {
	w := newWorld(t)
	proxy := serve(t, w.options(hosts(t, "a.com")))
	requests := tabletest.Read(t, "requests.txt")
	requests["431"] = []string{"GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\nX: " + strings.Repeat("x", 1<<17) + "\r\n\r\n"}
	for want, all := range requests {
		for _, request := range all {
			status, body := dial(t, proxy).ask(t, request)
			require.Equal(t, want, strconv.Itoa(status), "%.80q: %s", request, body)
		}
	}
	require.Empty(t, w.dialled)
	require.Empty(t, w.looked)
}

// A request cannot carry another one with it.
//
// Clause X7.
func TestProxyChecksEachRequest(t *testing.T) {
	w := newWorld(t)
	proxy := serve(t, w.options(hosts(t, "a.com")))
	c := dial(t, proxy)
	status, _ := c.ask(t, "GET http://a.com/1 HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, 200, status)
	status, _ = c.ask(t, "GET http://evil.com/2 HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, 403, status)

	evil := "GET http://evil.com/3 HTTP/1.1\r\nHost: a.com\r\n\r\n"
	c = dial(t, proxy)
	status, body := c.ask(t, fmt.Sprintf("POST http://a.com/ HTTP/1.1\r\nHost: a.com\r\n"+
		"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(evil)+5, evil))
	if status == 200 { // its length is ignored, and what follows is a request
		require.Contains(t, body, "body= ")
		status, _ = c.ask(t, "")
	}
	require.NotEqual(t, 200, status)

	// What follows a refused CONNECT does not reach anybody.
	c = dial(t, proxy)
	status, _ = c.ask(t, "CONNECT evil.com:80 HTTP/1.1\r\nHost: a.com\r\n\r\n"+evil)
	require.Equal(t, 403, status)
	status, _ = c.ask(t, "")
	require.NotEqual(t, 200, status)

	status, _ = dial(t, proxy).ask(t, "GET http://a.com/away HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, http.StatusFound, status, "a redirect is not followed")
	for _, address := range w.dialled {
		require.Equal(t, "93.184.216.34:80", address)
	}
	require.NotContains(t, w.looked, "evil.com.")
}

// Clause X7.
func TestProxyChecksAddresses(t *testing.T) {
	w := newWorld(t)
	for name, addrs := range map[string][]string{
		"inside.com.": {"10.0.0.5"}, "mixed.com.": {"93.184.216.34", "169.254.169.254"},
		"nat64.com.": {"64:ff9b::7f00:1"}, "mapped.com.": {"::ffff:127.0.0.1"}, "zone.com.": {"fe80::1%eth0"},
		"own.com.": {"::ffff:10.0.0.6"}, "x.localhost.": {"127.0.0.1"}, "azure.com.": {"168.63.129.16"},
	} {
		w.names[name] = addrs
	}
	proxy := serve(t, w.options(hosts(t, "inside.com,mixed.com,nat64.com,mapped.com,zone.com,own.com,10.0.0.6,"+
		"x.localhost,azure.com,localhost:3000,none.com")))
	for name, near := range map[string]string{"inside.com": "10.0.0.5", "mixed.com": "169.254.169.254",
		"nat64.com": "64:ff9b::7f00:1", "mapped.com": "127.0.0.1", "zone.com": "fe80::1",
		"x.localhost": "127.0.0.1", "azure.com": "168.63.129.16"} {
		status, body := dial(t, proxy).ask(t, "CONNECT "+name+":443 HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Equal(t, 403, status, name)
		require.Contains(t, body, "leads to "+near+",")
		status, _ = dial(t, proxy).ask(t, "GET http://"+name+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Equal(t, 403, status, name)
	}
	require.Empty(t, w.dialled)
	for _, target := range []string{"own.com:443", "10.0.0.6:80", "localhost:3000"} {
		status, _ := dial(t, proxy).ask(t, "CONNECT "+target+" HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Equal(t, 200, status, target)
	}
	require.Equal(t, []string{"10.0.0.6:443", "10.0.0.6:80", "127.0.0.1:3000"}, w.dialled)
	status, _ := dial(t, proxy).ask(t, "CONNECT none.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, w.refusals, hostproxy.Refusal{Target: "inside.com:443", Entry: "10.0.0.5", Near: "10.0.0.5"})
}

// A name server that answers differently each time is asked once, and what it said is used.
//
// Clause X7.
func TestProxyIsNotRebound(t *testing.T) {
	w := newWorld(t)
	o := w.options(hosts(t, "a.com"))
	var asked int
	dialled := make(chan string, 1)
	o = o.WithNetwork(func(context.Context, string) ([]netip.Addr, error) {
		if asked++; asked > 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}, func(_ context.Context, address string) (net.Conn, error) {
		dialled <- address
		return nil, errors.New("unreachable")
	})
	proxy := serve(t, o)
	status, _ := dial(t, proxy).ask(t, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, http.StatusBadGateway, status)
	require.Equal(t, "8.8.8.8:80", <-dialled)
	status, _ = dial(t, proxy).ask(t, "GET http://a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n")
	require.Equal(t, http.StatusForbidden, status)
	require.Empty(t, dialled)
}

func TestProxyWithPasswordAndPorts(t *testing.T) {
	w := newWorld(t)
	o := w.options(hosts(t, "a.com"))
	o.Password, o.Ports = "secret", hostproxy.Ports{Limited: true, List: []uint16{443}}
	proxy := serve(t, o)
	for credentials, want := range map[string]int{"": 407, "Proxy-Authorization: Basic eDp5\r\n": 407,
		"Proxy-Authorization: basic c2FuZGJveDpzZWNyZXQ=\r\n": 200} {
		status, _ := dial(t, proxy).ask(t, "CONNECT a.com:443 HTTP/1.1\r\nHost: x\r\n"+credentials+"\r\n")
		require.Equal(t, want, status, credentials)
	}
	status, body := dial(t, proxy).ask(t, "GET http://a.com/ HTTP/1.1\r\nHost: x\r\n"+
		"Proxy-Authorization: Basic c2FuZGJveDpzZWNyZXQ=\r\n\r\n")
	require.Equal(t, 403, status)
	require.Contains(t, body, "not in sandboxPorts")
	require.Equal(t, []string{"93.184.216.34:443"}, w.dialled)
}

// The user's own proxy gets what is allowed, and nothing else.
func TestProxyGoesThroughAnother(t *testing.T) {
	var seen []string
	var mu sync.Mutex
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		if r.Method == http.MethodConnect && strings.HasPrefix(r.Host, "down.") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer upstream.Close()
	address, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	address.User = url.UserPassword("me", "pw")
	proxy := serve(t, hostproxy.Options{Hosts: hosts(t, "a.com,down.com"), Upstream: http.ProxyURL(address)})
	status, _ := dial(t, proxy).ask(t, "CONNECT a.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, 200, status)
	status, _ = dial(t, proxy).ask(t, "GET http://a.com/x HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, 200, status)
	status, body := dial(t, proxy).ask(t, "CONNECT down.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, http.StatusBadGateway, status, body)
	status, _ = dial(t, proxy).ask(t, "CONNECT evil.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, 403, status)
	require.Equal(t, []string{"CONNECT a.com:443 Basic bWU6cHc=", "GET http://a.com/x Basic bWU6cHc=",
		"CONNECT down.com:443 Basic bWU6cHc="}, seen)
}

func TestForward(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := hostproxy.New(w.options(hosts(t, "localhost:3000")))
	p.Forward(l, 3000)
	_, body := dial(t, l.Addr().String()).ask(t, "GET /x HTTP/1.1\r\nHost: localhost:3000\r\n\r\n")
	require.Contains(t, body, "host=localhost:3000 path=/x")
	require.Equal(t, []string{"127.0.0.1:3000"}, w.dialled)
	p.Close()
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}

// Clients that say nothing hold up others only at the limit, and nothing is left when the proxy is
// closed (TestMain).
func TestProxyLimitsConnections(t *testing.T) {
	w := newWorld(t)
	proxy := serve(t, w.options(hosts(t, "a.com")))
	var idle []client
	for i := range hostproxy.MaxConnections {
		c := dial(t, proxy)
		if i%2 == 0 {
			status, _ := c.ask(t, "CONNECT a.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
			require.Equal(t, 200, status)
		} else {
			_, err := io.WriteString(c, "GET http://a.com/ HTTP/1.1\r\nHo")
			require.NoError(t, err)
		}
		idle = append(idle, c)
	}
	late := dial(t, proxy)
	_, err := io.WriteString(late, "GET http://evil.com/ HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, idle[0].Close())
	res, err := http.ReadResponse(late.in, nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 403, res.StatusCode)
}

func TestProxyClosedEarly(t *testing.T) {
	p := hostproxy.New(hostproxy.Options{})
	p.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.Serve(l)
	p.Forward(l, 1)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}
