package hosts

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Options configure a [Proxy].
type Options struct {
	// Hosts are what the proxy connects to, a list.
	Hosts Hosts
	// Ports limit the ports to which it connects there.
	Ports Ports
	// Password is required from clients, unless it is "". The user's name is [User].
	Password string
	// Refused is called for each target that is refused, once. It may be nil. Calls may overlap.
	Refused func(Refusal)
	// Upstream returns the address of the proxy that requests must go through, or nil. It is like
	// [http.ProxyFromEnvironment]. Such a proxy resolves names itself, so their addresses are not
	// checked. If Upstream itself is nil, no request goes through a proxy.
	Upstream func(*http.Request) (*url.URL, error)

	lookup func(ctx context.Context, name string) ([]netip.Addr, error) // nil means DNS
	dial   func(ctx context.Context, address string) (net.Conn, error)  // nil means TCP
}

// User is the name with which clients of a proxy with a password sign in.
const User = "sandbox"

// Refusal is a target that a proxy refused.
type Refusal struct {
	// Target is the host and port.
	Target string
	// Entry is the one that the list lacks, "" if it is in the list and the port is
	// not permitted.
	Entry string
	// Near is the address in a private network to which an allowed name was resolved, or "".
	Near string
}

// Limits of a proxy.
const (
	maxConnections = 200 // of clients; further ones wait
	maxHeader      = 64 << 10
	maxRefusals    = 100 // that are remembered
	headerTimeout  = 10 * time.Second
	connectTimeout = 10 * time.Second
	idleTimeout    = 10 * time.Minute
)

// Proxy carries connections to the hosts of a list. Its methods are safe for concurrent use. The
// caller must close it.
type Proxy struct {
	options Options
	server  *http.Server
	slots   chan struct{} // has as many entries as there are clients
	life    context.Context
	end     context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	refused map[Refusal]bool
}

// New returns a proxy that serves no listener yet.
func New(o Options) *Proxy {
	if o.lookup == nil {
		resolver := &net.Resolver{PreferGo: true} // one parser of names, which is Go's
		o.lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return resolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if o.dial == nil {
		o.dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if o.Upstream == nil {
		o.Upstream = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	p := &Proxy{options: o, slots: make(chan struct{}, maxConnections), refused: map[Refusal]bool{}}
	p.life, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ErrorLog: quiet,
		DisableGeneralOptionsHandler: true, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ConnState:   p.limit,
		BaseContext: func(net.Listener) context.Context { return p.life }}
	return p
}

// Serve serves clients that connect to l, which the proxy closes, and returns at once.
func (p *Proxy) Serve(l net.Listener) { p.work(l, func() { _ = p.server.Serve(l) }) }

// limit lets a new client wait until there are fewer than maxConnections. One that is hijacked has
// its slot until free is called.
func (p *Proxy) limit(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.take()
	case http.StateClosed:
		p.free()
	}
}

// take waits for a slot, or until the proxy is closed.
func (p *Proxy) take() {
	select {
	case p.slots <- struct{}{}:
	case <-p.life.Done():
	}
}

func (p *Proxy) free() {
	select {
	case <-p.slots:
	case <-p.life.Done():
	}
}

// Forward carries what connects to l to a port of localhost, which must be in the list, and returns
// at once. The proxy closes l.
func (p *Proxy) Forward(l net.Listener, port uint16) {
	p.work(l, func() {
		defer p.hold(l)()
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.take()
			p.work(client, func() { p.forward(client, port) })
		}
	})
}

func (p *Proxy) forward(client net.Conn, port uint16) {
	defer p.free()
	defer client.Close()
	remote, err := p.connect(p.life, Target{name: localhost, port: port})
	if err == nil {
		p.tunnel(client, client, remote)
	}
}

// begin has Close wait for a call of working.Done. It reports whether the proxy is still open.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.working.Add(1)
	}
	return !p.closed
}

// work runs f on a goroutine that Close waits for. If the proxy is closed it only closes c.
func (p *Proxy) work(c io.Closer, f func()) {
	if !p.begin() {
		_ = c.Close()
		return
	}
	go func() {
		defer p.working.Done()
		f()
	}()
}

// Close ends all connections, and returns when nothing runs any more.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	_ = p.server.Close()
	p.working.Wait()
}

// hold has Close close c, which the returned function closes too. It is called once, and waits if
// Close has just begun to do so.
func (p *Proxy) hold(c io.Closer) (drop func()) {
	closed := make(chan struct{})
	stop := context.AfterFunc(p.life, func() {
		_ = c.Close()
		close(closed)
	})
	return func() {
		_ = c.Close()
		if !stop() {
			<-closed
		}
	}
}

// serve answers one request.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		return
	}
	defer p.working.Done()
	if !p.isClient(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="acp-agent"`)
		http.Error(w, "the proxy of acp-agent's sandbox needs the password in HTTPS_PROXY",
			http.StatusProxyAuthRequired)
		return
	}
	target, err := requested(r)
	switch {
	case err != nil:
		http.Error(w, "acp-agent's sandbox: "+err.Error(), http.StatusBadRequest)
	case !p.options.Hosts.Lists(target):
		p.refuse(w, Refusal{Target: target.String(), Entry: target.Entry()})
	case !p.options.Ports.Allow(target.port):
		p.refuse(w, Refusal{Target: target.String()})
	case r.Method == http.MethodConnect:
		p.serveConnect(w, r, target)
	case r.Header.Get("Upgrade") != "":
		http.Error(w, "acp-agent's sandbox: use CONNECT for a protocol other than HTTP",
			http.StatusNotImplemented)
	default:
		p.serveHTTP(w, r, target)
	}
}

// isClient reports whether r has the password.
func (p *Proxy) isClient(r *http.Request) bool {
	if p.options.Password == "" {
		return true
	}
	scheme, credentials, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	given, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials))
	want := User + ":" + p.options.Password
	return err == nil && strings.EqualFold(scheme, "basic") &&
		subtle.ConstantTimeCompare(given, []byte(want)) == 1
}

// requested returns the target of a request.
func requested(r *http.Request) (Target, error) {
	if r.Method == http.MethodConnect {
		return ParseTarget(r.RequestURI, 0)
	}
	switch {
	case r.URL.Scheme != "http":
		return Target{}, errors.New("a request to this proxy needs an address that begins with " +
			"http://; for https use CONNECT")
	case r.URL.User != nil:
		return Target{}, errors.New("a user's name is not allowed in the address")
	}
	return ParseTarget(r.URL.Host, 80)
}

// refuse answers a request whose target is not allowed.
func (p *Proxy) refuse(w http.ResponseWriter, r Refusal) {
	p.report(r)
	w.Header().Set("X-Proxy-Error", "blocked-by-sandbox")
	http.Error(w, r.Error(), http.StatusForbidden)
}

// Error says why the target is refused, for the program that asked for it.
func (r Refusal) Error() string {
	text := "acp-agent's sandbox does not allow " + r.Target
	switch {
	case r.Near != "":
		return text + ", because it leads to " + r.Near + ", which is not a public address and " +
			"not in sandboxHosts itself"
	case r.Entry == "":
		return text + ", because its port is not in sandboxPorts"
	}
	return text + ", because it is not in sandboxHosts"
}

// report calls Refused, once for each target.
func (p *Proxy) report(r Refusal) {
	p.mu.Lock()
	known := p.refused[r] || len(p.refused) >= maxRefusals
	if !known {
		p.refused[r] = true
	}
	p.mu.Unlock()
	if !known && p.options.Refused != nil {
		p.options.Refused(r)
	}
}

// fail answers a request to an allowed target that failed.
func (p *Proxy) fail(w http.ResponseWriter, err error) {
	if refusal, ok := errors.AsType[Refusal](err); ok {
		p.refuse(w, refusal)
		return
	}
	http.Error(w, "acp-agent's sandbox: "+err.Error(), http.StatusBadGateway)
}

func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request, t Target) {
	remote, err := p.reach(r, t)
	if err != nil {
		p.fail(w, err)
		return
	}
	defer p.hold(remote)()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.free()
	defer client.Close()
	if client.SetDeadline(time.Time{}) != nil || buffered.Writer.Flush() != nil {
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		p.tunnel(client, buffered.Reader, remote)
	}
}

// reach connects to t for CONNECT, through an upstream proxy if there is one.
func (p *Proxy) reach(r *http.Request, t Target) (net.Conn, error) {
	via, err := p.options.Upstream(&http.Request{URL: &url.URL{Scheme: "https", Host: t.String()}})
	switch {
	case err != nil:
		return nil, err
	case via != nil:
		return p.openThrough(r.Context(), via, t)
	}
	return p.connect(r.Context(), t)
}

// serveHTTP passes a request on to t, and nothing else of its connection.
func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request, t Target) {
	via, err := p.options.Upstream(&http.Request{URL: &url.URL{Scheme: "http", Host: t.String()}})
	if err != nil {
		p.fail(w, err)
		return
	}
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		if via != nil {
			return p.options.dial(ctx, address)
		}
		return p.connect(ctx, t) // whatever the address, which was not checked
	}
	forward := httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: maxHeader, DialContext: dial, Proxy: http.ProxyURL(via)},
		FlushInterval: -1, // a stream of events is passed on as it comes
		ErrorLog:      p.server.ErrorLog,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Host, out.Out.Host = t.String(), strings.TrimSuffix(t.String(), ":80")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { p.fail(w, err) },
	}
	forward.ServeHTTP(w, r)
}
