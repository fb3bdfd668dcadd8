package mcpclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Clause M4.
func TestAuthorizationPageKeepsOurRequest(t *testing.T) {
	const ours = "client_id=c&code_challenge=x&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&state=s"
	for endpoint, why := range map[string]string{
		"https://as.test/authorize?":                                      "",
		"https://as.test/authorize?tenant=client_id%3D&audience=a&":       "",
		"https://as.test/authorize?redirect_uri=https%3A%2F%2Fevil.test&": "parameter redirect_uri",
		"https://as.test/authorize?Redirect_URI=https%3A%2F%2Fevil.test&": "parameter Redirect_URI",
		"https://as.test/authorize?redirect%5Furi=https://evil.test&":     "parameter redirect_uri",
		"https://as.test/authorize?request_uri=https://evil.test/jwt&":    "parameter request_uri",
		"https://as.test/authorize?scope=all&":                            "parameter scope",
		"https://as.test/authorize?client_id=evil&":                       "parameter client_id",
		"https://as.test/authorize?a;redirect_uri=evil&":                  "cannot be read",
		"https://as.test/authorize?redirect_uri=https://evil.test#&":      "fragment",
		"https://as.test/authorize#?":                                     "fragment",
		"https://accounts.test@evil.test/authorize?":                      "user name",
		"https://\u0430s.test/authorize?":                                 "must be written",
		"javascript:alert(1)?":                                            "scheme",
	} {
		page, err := authorizationPage(endpoint + ours)
		if why == "" {
			require.NoError(t, err, endpoint)
			require.Equal(t, endpoint+ours, page.String())
			continue
		}
		require.ErrorContains(t, err, why, endpoint)
	}
}

func at(n *tokenNetwork, address string) {
	from := netip.MustParseAddr(address)
	req := httptest.NewRequest(http.MethodPost, "https://mcp.test/mcp", nil)
	n.setServer("https://mcp.test/mcp", &http.Response{
		Request: req.WithContext(context.WithValue(req.Context(), addressKey{}, &from))})
}

// Clause M4.
func TestSigningInStaysInTheServersNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for server, allowed := range map[string]map[string]bool{
		"192.0.2.1":     {"https://8.8.8.8": true, "https://10.0.0.1": false, "https://127.0.0.1": false, "https://[::1]": false},
		"10.0.0.9":      {"https://10.0.0.1": true, "https://[fd00::1]": true, "https://localhost": false, "https://0.0.0.0": false},
		"fe80::1":       {"https://169.254.169.254": true, "https://[::ffff:127.0.0.1]": false},
		"2001:db8::1":   {"https://[fe80::1]": false, "https://100.64.0.1": false, "https://a.localhost": false, "http://8.8.8.8": false},
		"127.0.0.1":     {"https://[::1]": true, "http://localhost.:1": true, "https://10.0.0.1": true, "http://10.0.0.1": false},
		"::ffff:7f00:1": {"http://127.0.0.1": true},
	} {
		var n tokenNetwork
		at(&n, server)
		for address, want := range allowed {
			u, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, want, n.checkURL(u) == nil, "%s from %s", address, server)
		}
		// A name counts by what it resolves to when it is dialed.
		conn, err := n.dialContext(t.Context(), "tcp", "localhost:"+port)
		if strings.HasSuffix(server, "127.0.0.1") || server == "::ffff:7f00:1" {
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			continue
		}
		require.ErrorContains(t, err, "is on this machine, and the MCP server is not")
		err = n.checkNames(t.Context(), &url.URL{Scheme: "https", Host: "localhost"})
		require.ErrorContains(t, err, "is on this machine")
	}
}

// Clause M4.
func TestTokensComeFromTheHostThatWasNamed(t *testing.T) {
	var n tokenNetwork
	at(&n, "192.0.2.1")
	n.learn([]byte(`{"authorization_endpoint":"https://login.test/a?tenant=1","token_endpoint":"https://tokens.test/t"}`))
	page := &url.URL{Scheme: "https", Host: "login.test", Path: "/a", RawQuery: "tenant=1&client_id=c"}
	form := url.Values{"grant_type": {"authorization_code"}}
	require.Error(t, n.checkForm("tokens.test", form), "nobody was asked")
	require.Equal(t, "tokens.test", n.bindTokens(page))
	require.NoError(t, n.checkForm("tokens.test", form))
	require.NoError(t, n.checkForm("other.test", url.Values{}))
	n.learn([]byte(`{"authorization_endpoint":"https://login.test/a","token_endpoint":"https://evil.test/t"}`))
	require.ErrorContains(t, n.checkForm("evil.test", form), "not the host that the user was told")

	require.Equal(t, "other.test", n.bindTokens(&url.URL{Scheme: "https", Host: "other.test", Path: "/a"}),
		"that of the page if nothing else was announced")
}

// A proxy looks names up itself. What they resolve to here still counts.
//
// Clause M4.
func TestSigningInThroughAProxy(t *testing.T) {
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	a := &authorizer{server: &server{redactor: redactor{&secret.Scrubber{}}}}
	a.network.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		known := map[string]string{"public.test": "8.8.8.8", "inside.test": "64:ff9b::10.0.0.1"}
		if ip, ok := known[host]; ok {
			return []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr(ip)}, nil
		}
		return nil, errors.New("no such host")
	}
	at(&a.network, "8.8.8.8")
	always := func(*http.Request) (*url.URL, error) { return address, nil }
	transport := newTokenTransport(a, always)
	fetch := func(address string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(req)
		return err
	}
	require.ErrorContains(t, fetch("https://inside.test/"), "is in a private network")
	require.ErrorContains(t, fetch("https://[64:ff9b::7f00:1]/"), "is on this machine")
	require.Empty(t, through)
	require.ErrorContains(t, fetch("https://public.test/"), "Bad Gateway")
	require.ErrorContains(t, fetch("https://unknown.test/"), "Bad Gateway")
	require.Equal(t, []string{"public.test:443", "unknown.test:443"}, through,
		"the proxy knows what cannot be resolved here")
}
