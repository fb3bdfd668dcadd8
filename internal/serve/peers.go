package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Peers are the other servers of an installation. A proxy in front of them may send a client that
// resumes a connection to a server that does not have it, for example because the one that has it
// is shutting down. That server passes the connection on to the one that has it.
type Peers struct {
	urls []*url.URL
	// lookup returns the addresses of a host.
	lookup func(ctx context.Context, host string) ([]string, error)
}

// ParsePeers returns the servers with these URLs, such as http://two:8765. A host may have several
// addresses, each of which is a server; the server that asks may be one of them. Tokens are sent to
// them: without trusted, they need TLS.
func ParsePeers(urls []string, trusted Network) (Peers, error) {
	p := Peers{lookup: net.DefaultResolver.LookupHost}
	for _, given := range urls {
		to, err := url.Parse(given)
		switch {
		case err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https":
			return p, fmt.Errorf("%q is not the URL of a server: give one such as http://two:8765", given)
		case to.User != nil || to.RawQuery != "" || to.Path != "" && to.Path != "/":
			return p, fmt.Errorf("%q must have only a host and a port", given)
		case to.Scheme == "http" && trusted != TrustedNetwork && !secret.IsLoopback(to.Hostname()):
			return p, fmt.Errorf("%s would get tokens unencrypted: use https://, or --behind-proxy if "+
				"nobody else can read the network between the servers", given)
		}
		p.urls = append(p.urls, to)
	}
	return p, nil
}

// Network says who can read what servers send each other.
type Network int

const (
	// OpenNetwork can be read by others.
	OpenNetwork Network = iota
	// TrustedNetwork is read by nobody else.
	TrustedNetwork
)

// passedHeader marks a request that a server passes on, so that no other server does it again.
const passedHeader = "Acp-Agent-Passed"

// pass passes a request to resume a connection on to the server that has the connection, and
// returns when the client has lost it again. It reports false if it has not answered the request:
// no server has the connection.
func (p Peers) pass(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get(passedHeader) != "" {
		return false
	}
	for _, to := range p.urls {
		for _, address := range p.addresses(r.Context(), to) {
			if passTo(w, r, to, address) {
				return true
			}
		}
	}
	return false
}

// addresses returns the addresses of a server, with ports.
func (p Peers) addresses(ctx context.Context, to *url.URL) []string {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	port := cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme])
	hosts, err := p.lookup(ctx, to.Hostname())
	if err != nil {
		return nil
	}
	for i, host := range hosts {
		hosts[i] = net.JoinHostPort(host, port)
	}
	return hosts
}

// errElsewhere is the reason why a server does not resume a connection.
var errElsewhere = errors.New("another server has the connection")

// passTo passes a request on to the server at an address, and reports whether that has accepted it.
func passTo(w http.ResponseWriter, r *http.Request, to *url.URL, address string) bool {
	const connecting, answering = 2 * time.Second, 5 * time.Second
	dialer := net.Dialer{Timeout: connecting}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: connecting, ResponseHeaderTimeout: answering, DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	accepted := true
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(to)
			pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
			pr.SetXForwarded()
			pr.Out.Header.Set(passedHeader, "1")
		},
		ModifyResponse: func(response *http.Response) error {
			if response.StatusCode != http.StatusSwitchingProtocols {
				return errElsewhere
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { accepted = false },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	proxy.ServeHTTP(w, r)
	return accepted
}

// passOn passes a request of a user on if it is to resume a connection that this server does not
// have, and reports whether it has answered the request.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request, user string) bool {
	if !websocket.Resumes(r) || s.acceptor.Has(r, user) {
		return false
	}
	s.mu.Lock()
	ended := r.Context().Err() != nil
	if !ended {
		s.passing.Add(1)
	}
	s.mu.Unlock()
	if ended {
		return false
	}
	defer s.passing.Done()
	return s.options.Peers.pass(w, r)
}
