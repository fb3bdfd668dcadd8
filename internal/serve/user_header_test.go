package serve

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// named returns a change of options that believes the proxies at addresses.
func named(t *testing.T, proxies []string, within ...string) func(*Options) {
	t.Helper()
	h, err := ParseUserHeader("x-forwarded-user", proxies, within)
	require.NoError(t, err)
	return func(o *Options) { o.UserHeader, o.BehindProxy = h, true }
}

var loopback = []string{"127.0.0.1"}

// raw sends a request with these lines of the header as they are, and returns the status.
func (h *host) raw(lines ...string) int {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.address)
	require.NoError(h.t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", Path, h.address,
		strings.Join(append(lines, ""), "\r\n"))
	require.NoError(h.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(h.t, err)
	require.NoError(h.t, response.Body.Close())
	return response.StatusCode
}

// accepted is the status of a request of a known user that is no WebSocket.
const accepted = http.StatusUpgradeRequired

// A proxy names a user with one valid name, or nobody.
//
// Clause N1.
func TestProxiesNameUsers(t *testing.T) {
	h := start(t, named(t, loopback))
	token := "Authorization: Bearer " + h.add("ana")
	h.add("ana@example.org")
	for lines, want := range map[string]int{
		"X-Forwarded-User: ana":                                 accepted,
		"x-forwarded-USER:ana  ":                                accepted,
		"X-Forwarded-User: ana@example.org":                     accepted,
		"X-Forwarded-User: ana|" + token:                        accepted,
		token:                                                   accepted,
		"X-Forwarded-User: bob|" + token:                        http.StatusForbidden,
		"X-Forwarded-User: bob":                                 http.StatusForbidden,
		"X-Forwarded-User:":                                     http.StatusForbidden,
		"X-Forwarded-User: |" + token:                           http.StatusForbidden,
		"X-Forwarded-User: Ana@Example.org":                     accepted,
		"X-Forwarded-User: \u212aai":                            http.StatusForbidden, // the Kelvin sign
		"X-Forwarded-User: ana|X-Forwarded-User: ana":           http.StatusForbidden,
		"X-Forwarded-User: bob|x-forwarded-user: ana":           http.StatusForbidden,
		"X-Forwarded-User: ana, bob":                            http.StatusForbidden,
		"X-Forwarded-User: ../tokens/ana":                       http.StatusForbidden,
		"X-Forwarded-User: ana.json":                            http.StatusForbidden,
		"X-Forwarded-User: ana/":                                http.StatusForbidden,
		`X-Forwarded-User: ..\ana`:                              http.StatusForbidden,
		"X-Forwarded-User: " + strings.Repeat("a", 65):          http.StatusForbidden,
		"X-Forwarded-User: an\u00e4":                            http.StatusForbidden,
		"X_Forwarded_User: ana":                                 http.StatusUnauthorized,
		"X-Forwarded-User : ana":                                http.StatusBadRequest,
		"X-Forwarded-User: a|X-Other: 1\nX-Forwarded-User: ana": http.StatusForbidden,
		"X-Forwarded-User:|  ana|X-A: b":                        accepted, // folded: one value
		"X-Forwarded-User: ana|  bob":                           http.StatusForbidden,
		"":                                                      http.StatusUnauthorized,
	} {
		require.Equal(t, want, h.raw(strings.Split(lines, "|")...), "%q", lines)
	}
	require.Contains(t, h.audit.String(), `"msg":"rejected a connection: the proxy names no user of this server"`)
	require.NotContains(t, h.audit.String(), strings.TrimPrefix(token, "Authorization: Bearer ana."))
}

// Whoever is no proxy needs a token, whatever the header says.
//
// Clause N1.
func TestOnlyProxiesNameUsers(t *testing.T) {
	h := start(t, named(t, []string{"10.0.0.7", "127.0.0.2", "fe80::/10"}, t.TempDir()))
	token := "Authorization: Bearer " + h.add("ana")
	h.add("bob")
	require.Equal(t, http.StatusUnauthorized, h.raw("X-Forwarded-User: bob"))
	require.Equal(t, http.StatusUnauthorized, h.raw("X-Forwarded-User: bob", "X-Forwarded-For: 10.0.0.7",
		"Forwarded: for=10.0.0.7", "X-Real-IP: 10.0.0.7"))
	require.Equal(t, accepted, h.raw("X-Forwarded-User: bob", token))
	require.Contains(t, h.start("X-Forwarded-User: bob", token), `"msg":"connected","user":"ana"`)
}

// start opens a connection with these lines of the header, and returns the audit log once it has
// the connection.
func (h *host) start(lines ...string) string {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.address)
	require.NoError(h.t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s\r\n\r\n",
		Path, h.address, strings.Join(lines, "\r\n"))
	require.NoError(h.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(h.t, err)
	require.Equal(h.t, http.StatusSwitchingProtocols, response.StatusCode)
	require.Eventually(h.t, func() bool { return strings.Contains(h.audit.String(), `"msg":"connected"`) },
		volume.Patience, time.Millisecond)
	return h.audit.String()
}

// proxy starts a proxy that names a user to the server, and returns its URL.
func (h *host) proxy(user string) string {
	h.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h.t, err)
	server := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: h.address})
		r.Out.Header.Set("X-Forwarded-User", user)
	}}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	h.t.Cleanup(func() {
		require.NoError(h.t, server.Close())
		require.ErrorIs(h.t, <-ended, http.ErrServerClosed)
	})
	return "ws://" + listener.Addr().String()
}

// Users without an account have the folders and limits of all of them, and those of an account that
// is made later. A name belongs to one user, with or without a token.
//
// Clauses N1, N4.
func TestUsersWithoutAnAccount(t *testing.T) {
	dir := t.TempDir()
	h := start(t, named(t, loopback, dir+"/{user}"), func(o *Options) { o.Limits.Sessions = 1 })
	for _, name := range []string{"ana/shop", "bob/shop", "more"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	ana, bob := connect(t, h.proxy("ana"), "x.y").initialize(), connect(t, h.proxy("bob"), "x.y").initialize()
	require.Contains(t, ana.open(dir+"/bob/shop").Error.Message,
		"it is in none of the folders that you may open: "+dir+"/ana")
	require.Empty(t, ana.open(dir+"/ana/shop").Error)
	require.Contains(t, ana.open(dir+"/ana/shop").Error.Message, "the limit is 1")
	require.Empty(t, bob.open(dir+"/bob").Error)
	h.endRevoked()
	ana.lives()
	require.Contains(t, string(ana.call("session/list", map[string]any{}).Result), dir+"/ana/shop")
	require.NotContains(t, string(bob.call("session/list", map[string]any{}).Result), "shop")

	require.NoError(t, ana.in.Close()) // it would connect again, and take its session back
	require.NoError(t, ana.end())
	require.Eventually(t, func() bool { return h.acp.UsedBy("ana").Sessions == 0 }, volume.Patience, time.Millisecond)
	same := connect(t, "ws://"+h.address, h.add("ana", dir+"/more")).initialize()
	require.Contains(t, string(same.call("session/list", map[string]any{}).Result), dir+"/ana/shop")
	require.Empty(t, same.open(dir+"/more").Error)
}

func TestUserHeadersAreChecked(t *testing.T) {
	for _, c := range []struct {
		header, proxy string
		within        []string
		why           string
	}{
		{"", "10.0.0.7", nil, "not a header"},
		{"Authorization", "10.0.0.7", nil, "not a header"},
		{"sec-websocket-key", "10.0.0.7", nil, "not a header"},
		{"X Forwarded", "10.0.0.7", nil, "not a header"},
		{"X_User", "10.0.0.7", nil, "not a header"},
		{"Remote-User", "", nil, "not the address"},
		{"Remote-User", "proxy.example.org", nil, "not the address"},
		{"Remote-User", "0.0.0.0/0", nil, "not the address"},
		{"Remote-User", "::/0", nil, "not the address"},
		{"Remote-User", "10.0.0.7", []string{"relative"}, "absolute"},
	} {
		_, err := ParseUserHeader(c.header, []string{c.proxy}, c.within)
		require.ErrorContains(t, err, c.why, "%v", c)
	}
	_, err := ParseUserHeader("Remote-User", nil, nil)
	require.ErrorContains(t, err, "name the addresses")
	h, err := ParseUserHeader("Remote-User", []string{"::ffff:10.0.0.7", "2001:db8::/32"}, nil)
	require.NoError(t, err)
	for remote, want := range map[string]bool{"10.0.0.7:1": true, "[::ffff:10.0.0.7]:1": true, "10.0.0.8:1": false,
		"[2001:db8::9]:1": true, "[2001:db9::9]:1": false, "": false, "@": false} {
		require.Equal(t, want, h.believes(remote), remote)
	}
	require.False(t, UserHeader{}.believes("10.0.0.7:1"))
	_, ok := UserHeader{}.named((&http.Request{Header: http.Header{"": {"ana"}}}).WithContext(context.Background()))
	require.False(t, ok)
}
