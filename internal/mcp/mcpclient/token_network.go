package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/internal/sandbox/reach"
)

// tokenNetwork decides which hosts take part in signing in to a server. The server names them. So
// they must not be in a network in which the server itself is not, whatever addresses their names
// resolve to. It is safe for concurrent use.
type tokenNetwork struct {
	// lookup resolves the names of hosts to which a browser or proxy connects. A proxy resolves
	// names itself, so a name is checked only if it can be resolved here.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu     sync.Mutex
	server reach.Reach
	// endpoints maps authorization endpoints to the hosts of the token endpoints that were
	// announced with them.
	endpoints map[string]string
	// registers and documents say how the authorization server that was announced last knows
	// clients: it registers them, or reads a document about them.
	registers, documents bool

	tokens string // the host that issues tokens, as the user was told; "" before that
}

// setServer sets the server's reach to the reach of the address from which a response came, and
// forgets earlier announcements. If a proxy connected to the server, it uses the server's URL
// instead.
func (n *tokenNetwork) setServer(address string, res *http.Response) {
	at := reach.Public
	if from, ok := res.Request.Context().Value(addressKey{}).(*netip.Addr); ok && from.IsValid() {
		at = reach.Of(*from)
	} else if u, err := url.Parse(address); err == nil {
		at = reach.OfHost(u.Hostname())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server, n.endpoints = at, map[string]string{}
}

// check returns an error if a host is nearer than the server.
func (n *tokenNetwork) check(host string, at reach.Reach) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case at <= n.server:
		return nil
	case at == reach.Loopback:
		return fmt.Errorf("%s is on this machine, and the MCP server is not", host)
	default:
		return fmt.Errorf("%s is in a private network, and the MCP server is not", host)
	}
}

// checkURL returns an error unless u is https, or leads to this machine and the server is on this
// machine too.
func (n *tokenNetwork) checkURL(u *url.URL) error {
	at := reach.OfHost(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || at != reach.Loopback) {
		return fmt.Errorf("%s://%s is not https", u.Scheme, u.Host)
	}
	return n.check(u.Host, at)
}

// lookupTimeout is how long a name may take to be resolved.
const lookupTimeout = 5 * time.Second

// checkNames is checkURL for hosts to which a browser or a proxy connects. It accepts a name that
// cannot be resolved here, because the proxy may know it.
func (n *tokenNetwork) checkNames(ctx context.Context, u *url.URL) error {
	if err := n.checkURL(u); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all, _ := n.lookup(ctx, "ip", u.Hostname())
	for _, ip := range all {
		if err := n.check(u.Host, reach.Of(ip)); err != nil {
			return err
		}
	}
	return nil
}

// bindTokens returns the host that issues tokens after the user has signed in at page. From then on
// no other host gets codes or tokens.
func (n *tokenNetwork) bindTokens(page *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tokens = page.Host // of servers that announce nothing
	if host, ok := n.endpoints[endpointOf(page)]; ok {
		n.tokens = host
	}
	return n.tokens
}

// endpointOf returns the identity of an endpoint: its URL without parameters.
func endpointOf(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// learn remembers what a document says about an authorization server.
func (n *tokenNetwork) learn(document []byte) {
	var announced struct {
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Registration  string `json:"registration_endpoint"`
		Documents     bool   `json:"client_id_metadata_document_supported"`
	}
	if json.Unmarshal(document, &announced) != nil {
		return
	}
	page, err1 := url.Parse(announced.Authorization)
	tokens, err2 := url.Parse(announced.Token)
	if err1 != nil || err2 != nil || page.Host == "" || tokens.Host == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endpoints[endpointOf(page)] = tokens.Host
	n.registers, n.documents = announced.Registration != "", announced.Documents
}

// registration returns whether an authorization server was announced that registers no clients, and
// whether it reads documents about them.
func (n *tokenNetwork) registration() (none, documents bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.endpoints) > 0 && !n.registers, n.documents
}

// checkForm returns an error if a form with a code or token would be sent to a host other than the
// one that the user was told.
func (n *tokenNetwork) checkForm(host string, form url.Values) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if form.Has("grant_type") && host != n.tokens {
		return fmt.Errorf("%s is not the host that the user was told issues the tokens", host)
	}
	return nil
}

// dialContext connects to a host, unless it is nearer than the server.
func (n *tokenNetwork) dialContext(ctx context.Context, network, host string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return n.check(host, reach.Of(at.Addr()))
		},
	}
	return dialer.DialContext(ctx, network, host)
}

// maxMetadata is the most bytes of a response during sign-in.
const maxMetadata = 1 << 20

// client returns the client for requests to authorization servers. They do not get the server's
// headers.
func (a *authorizer) client() *http.Client {
	check := func(_ *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet || len(via) >= 5 {
			return errors.New("unexpected redirect")
		}
		return nil
	}
	return &http.Client{
		Transport: newTokenTransport(a, http.ProxyFromEnvironment),
		Timeout:   30 * time.Second, CheckRedirect: check,
	}
}

// tokenTransport sends the requests to authorization servers.
type tokenTransport struct {
	authorizer      *authorizer
	proxy           func(*http.Request) (*url.URL, error)
	direct, proxied *http.Transport // with proxied, the proxy connects
}

func newTokenTransport(a *authorizer, proxy func(*http.Request) (*url.URL, error)) *tokenTransport {
	direct := &http.Transport{
		DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	}
	proxied := direct.Clone()
	direct.DialContext, proxied.Proxy = a.network.dialContext, proxy
	return &tokenTransport{a, proxy, direct, proxied}
}

// RoundTrip implements [http.RoundTripper].
func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	network, transport, check := &t.authorizer.network, t.direct, (*tokenNetwork).checkURL
	form, err := formOf(req)
	if proxy, proxyErr := t.proxy(req); proxyErr == nil && proxy != nil {
		transport = t.proxied
		check = func(n *tokenNetwork, u *url.URL) error { return n.checkNames(req.Context(), u) }
	}
	if err == nil {
		err = errors.Join(check(network, req.URL), network.checkForm(req.URL.Host, form))
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	// The authorization server may repeat them in an error.
	for _, name := range []string{"code", "code_verifier", "refresh_token", "client_secret"} {
		t.authorizer.server.redactor.Add(form.Get(name))
	}
	res, err := transport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK || req.Method != http.MethodGet {
		return res, err
	}
	document, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata))
	if err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	network.learn(document)
	res.Body = readCloser{bytes.NewReader(document), res.Body}
	return res, nil
}

// formOf returns the form that a request sends, empty if it sends none.
func formOf(req *http.Request) (url.Values, error) {
	if req.GetBody == nil {
		return nil, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	form, _ := url.ParseQuery(string(content)) // a registration is not a form
	return form, err
}

// authorizationPage returns the address of an authorization page, to which the SDK has added the
// parameters of our request. It fails if the server's endpoint has parameters that could replace
// them, or a fragment, which would hide them: see RFC 6749, section 3.1.
func authorizationPage(address string) (*url.URL, error) {
	page, err := parsePage(address)
	if err != nil {
		return nil, fmt.Errorf("the address of its authorization page is not valid: %w", err)
	}
	const first = "client_id=" // of our parameters, which are sorted
	endpoint := address[:max(strings.LastIndex(address, first)-1, 0)]
	_, query, _ := strings.Cut(endpoint, "?")
	given, err := url.ParseQuery(query)
	if err != nil || strings.Contains(address, "#") || endpoint == "" {
		return nil, errors.New("the address of its authorization page is not valid: it has a " +
			"fragment or a query that cannot be read")
	}
	ours := []string{
		"client_id", "code_challenge", "code_challenge_method", "redirect_uri", "request",
		"request_uri", "resource", "response_mode", "response_type", "scope", "state",
	}
	for name := range given {
		if slices.Contains(ours, strings.ToLower(name)) {
			return nil, fmt.Errorf("the address of its authorization page is not valid: it has "+
				"the parameter %s, which belongs to the request", name)
		}
	}
	return page, nil
}
