package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/budget"
	"github.com/acp-agent/acp-agent/internal/loglimit"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/token"
	"github.com/acp-agent/acp-agent/internal/websocket"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/workspace"
)

// serveFlags are the flags of the serve subcommand.
type serveFlags struct {
	listen      string
	cert, key   string
	behindProxy bool
	grace       time.Duration
	metrics     string
	audit       string
	processes   proxy.PoolLimits
	memory      int // bytes
}

// newServe returns the command that serves editors over the network.
func newServe(s streams, set *settings) *cobra.Command {
	f := serveFlags{processes: proxy.PoolLimits{PerUser: 20, Total: 100}, memory: 512 << 20}
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDR] [flags] [-- COMMAND ARGS...]",
		Short: "Serve editors over the network",
		Long: `serve accepts connections over WebSocket, at the path ` + websocket.Path + `. Editors start acp-agent
connect URL instead of acp-agent. Everything runs on this machine, as the user that starts serve:
the sessions, their folders and the agent.

Each user needs a token; see acp-agent tokens. A user sees only the own sessions, opens only folders
in the directories of --within, and cannot start MCP servers except those that the configuration
allows by name.

On other addresses than those of this machine it needs a certificate, or --behind-proxy if something
in front of it terminates TLS. The certificate is read again for each connection, so it can be renewed.

/healthz answers while the program runs, /readyz while it accepts connections. When it is asked to
end (SIGINT, SIGTERM), it waits for running turns.`,
		Example: `  acp-agent tokens add ana --within ~/src
  acp-agent serve --listen 127.0.0.1:8765 --agent opencode
  acp-agent serve --listen :8765 --tls-cert cert.pem --tls-key key.pem`,
		Args: downstreamArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.cert == "") != (f.key == "") {
				return usagef("--tls-cert and --tls-key need each other")
			}
			if f.grace < 0 {
				return usagef("--grace: must not be negative (got %v)", f.grace)
			}
			return f.serve(cmd.Context(), s, set, args)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8765", "accept connections on `ADDR`")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "the certificate in `FILE`, with its chain")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "the certificate's key in `FILE`")
	cmd.Flags().BoolVar(&f.behindProxy, "behind-proxy", false,
		"accept connections without TLS from other machines")
	cmd.Flags().DurationVar(&f.grace, "grace", 25*time.Second,
		"how long to wait for running turns at the end, as a `DURATION` such as 1m")
	cmd.Flags().StringVar(&f.metrics, "metrics", "",
		"serve metrics for Prometheus on `ADDR`, at the path /metrics, to everybody who can connect")
	cmd.Flags().StringVar(&f.audit, "audit", "",
		"append who opened which folders, and answered which questions how, to `FILE`, as JSON lines")
	cmd.Flags().Var(intValue{&f.processes.Total, 1}, "max-agents",
		"start at most `N` processes of agents")
	cmd.Flags().Var(intValue{&f.processes.PerUser, 1}, "max-agents-per-user",
		"start at most `N` processes of agents for each user")
	cmd.Flags().Var(intValue{&f.memory, 1}, "message-memory",
		"keep at most `BYTES` of messages that are arriving or not answered, a quarter for each user")
	cmd.Flags().BoolVar(&set.logJSON, "log-json", false, "write the log as JSON lines")
	cmd.Flags().AddFlagSet(set.flags)
	return cmd
}

// serve serves clients until ctx ends.
func (f serveFlags) serve(ctx context.Context, s streams, set *settings, args []string) error {
	d, err := set.downstream(args)
	if err != nil {
		return err
	}
	if d.command.Path != "" {
		if err := d.profile.CheckInstalled(d.command); err != nil {
			return err
		}
	}
	d.model.Environment = mcpclient.BasicEnvironment() // as for MCP servers
	d.model.OnlyInSandbox = true
	d.sandboxer, d.model.Sandboxer = nil, nil // clients are on other machines
	logger, closeLog, err := set.openLog(s.err)
	if err != nil {
		return err
	}
	defer closeLog()
	logger, endLog := loglimit.New(logger)
	defer endLog()
	trace, closeTrace, err := openTrace(set.trace, s.err)
	if err != nil {
		return err
	}
	defer closeTrace()
	dir, err := set.stateDirectory()
	if err != nil {
		return err
	}
	roots, err := set.workspace()
	if err != nil {
		return err
	}
	tokens, err := set.tokens()
	if err != nil {
		return err
	}
	store, err := set.serverStore(logger)
	if err != nil {
		return err
	}
	defer store.Close()
	if database, ok := store.(*postgres.Store); ok {
		if _, err := database.Check(ctx); err != nil {
			return err
		}
	}
	auditLog, closeAudit, err := f.openAudit(s.err)
	if err != nil {
		return err
	}
	defer closeAudit()
	listener, err := f.open(ctx, logger)
	if err != nil {
		return err
	}
	n := &network{
		tokens: tokens, log: logger,
		acceptor: websocket.NewAcceptor(set.maxLine, websocket.Times{}, f.budget(set.maxLine)),
		audit:    auditLog, behindProxy: f.behindProxy, users: map[string]token.Token{},
	}
	users := serverUsers{
		set: set, tokens: tokens, dir: dir, downstream: d, pool: proxy.NewPool(f.processes), roots: roots,
		store: store, trace: trace, connected: new(atomic.Int64), log: logger, audit: auditLog,
		observe: func(e acp.Event) { n.metrics.observe(e) },
		timed:   func(s sessionstore.Store) sessionstore.Store { return timedStore{s, n.metrics.stored} },
	}
	n.peers = acp.NewServer(acp.ServerOptions{
		PerPeer: acp.Limits{Connections: maxConnections, Sessions: 200, Turns: 50},
		Options: users.options,
	})
	n.metrics = newMetrics(n.load)
	if f.metrics != "" {
		address, ended, err := n.metrics.listen(ctx, f.metrics)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer ended()
		fmt.Fprintf(s.err, "acp-agent: metrics on http://%s/metrics\n", address)
	}
	fmt.Fprintf(s.err, "acp-agent: serving on %s://%s%s\n", f.scheme(), listener.Addr(), websocket.Path)
	switch list, err := tokens.List(); {
	case err != nil:
		fmt.Fprintln(s.err, "acp-agent: a user cannot connect:", err)
	case len(list) == 0:
		fmt.Fprintln(s.err, "acp-agent: nobody can connect yet; see acp-agent tokens add --help")
	}
	err = n.serve(ctx, listener, f.grace)
	if err := users.pool.Close(context.WithoutCancel(ctx)); err != nil {
		logger.Warn("cannot end the agents", "error", err)
	}
	return err
}

// serverUsers is what the users of a server share.
type serverUsers struct {
	set        *settings
	tokens     *token.Store
	dir        string // of what is kept
	downstream downstream
	pool       *proxy.Pool
	roots      workspace.Options
	store      sessionstore.Shared
	trace      traceFunc
	connected  *atomic.Int64 // connections so far, which the trace tells apart
	log, audit *slog.Logger
	observe    func(acp.Event)
	timed      func(sessionstore.Store) sessionstore.Store
}

// options returns the options of a user's connection. The token may be another one than before.
func (u serverUsers) options(p acp.Peer) (acp.Options, error) {
	user, err := u.tokens.Get(p.Principal)
	if err != nil {
		return acp.Options{}, err
	}
	roots := u.roots
	roots.Policy.Allow = nil
	for _, within := range user.Within.All() {
		roots.Policy.Allow = append(roots.Policy.Allow, within)
	}
	d := u.downstream
	if user.Agent != "" {
		if d, err = u.set.behind(user.Agent, nil, "tokens: "); err != nil {
			return acp.Options{}, err
		}
		d.sandboxer = nil
	}
	// A token that is replaced may give other rights.
	d.pool, d.user = u.pool, user.Name
	d.rights = fmt.Sprintf("%q", []any{user.Agent, user.Within.Strings()})
	d.model.ConsentDir = consentDir(filepath.Join(u.dir, "users", user.Name))
	o := u.set.serving(
		d, u.dir, roots, u.timed(u.store.For(user.Name)), u.trace, u.log.With("user", user.Name))
	o.ConsentDir = d.model.ConsentDir
	o.RemoteGrants, err = u.set.config.Agents[d.profile.Name].Grants()
	if err != nil {
		return acp.Options{}, err
	}
	o.Trace = u.trace.of(fmt.Sprintf("editor[%d %s]", u.connected.Add(1), user.Name))
	userAudit := u.audit.With("user", user.Name)
	o.Observe = func(e acp.Event) {
		u.observe(e)
		audit(userAudit, e)
	}
	return o, nil
}

// budget returns the limits for messages of up to maxLine bytes. A user can send two of them at once.
func (f serveFlags) budget(maxLine int) *budget.Budget {
	perUser := max(f.memory/4, 2*maxLine)
	return budget.New(budget.Limits{
		PerUser: perUser, Total: max(f.memory, perUser), Message: maxLine,
	})
}

func (f serveFlags) scheme() string {
	if f.cert != "" {
		return "wss"
	}
	return "ws"
}

// open listens on the address, with TLS if there is a certificate.
func (f serveFlags) open(ctx context.Context, log *slog.Logger) (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usagef("--listen: invalid address %q; use one such as 127.0.0.1:8765 or :8765", f.listen)
	}
	if !secret.IsLoopback(host) && f.cert == "" && !f.behindProxy {
		return nil, usagef("--listen: %s can be reached from other machines: add --tls-cert and --tls-key, "+
			"or --behind-proxy if connections come from a proxy that terminates TLS", f.listen)
	}
	listener, err := listenTCP(ctx, "--listen", f.listen)
	if err != nil || f.cert == "" {
		return listener, err
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, errors.Join(usagef("--tls-cert: %v", err), listener.Close())
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&pair)
	return tls.NewListener(listener, &tls.Config{
		NextProtos: []string{"http/1.1"}, // WebSocket
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if pair, err := tls.LoadX509KeyPair(f.cert, f.key); err == nil {
				last.Store(&pair)
			} else { // perhaps one of the files is being replaced
				log.Error("cannot read the certificate again; the old one stays in use", "error", err)
			}
			return last.Load(), nil
		},
	}), nil
}

// openAudit returns the audit log, and a function that closes its file.
func (f serveFlags) openAudit(stderr io.Writer) (*slog.Logger, func(), error) {
	if f.audit == "" {
		return slog.New(slog.DiscardHandler), func() {}, nil
	}
	file, err := openAppend("audit", f.audit, stderr)
	if err != nil {
		return nil, nil, err
	}
	log, end := loglimit.New(slog.New(slog.NewJSONHandler(file, nil)))
	return log, func() {
		end()
		file.close()
	}, nil
}

// network serves the connections of users who have a token.
type network struct {
	tokens      *token.Store
	acceptor    *websocket.Acceptor
	peers       *acp.Server
	log         *slog.Logger
	audit       *slog.Logger // who connected and did what
	metrics     *serverMetrics
	behindProxy bool
	draining    atomic.Bool // there are no new connections

	mu    sync.Mutex
	users map[string]token.Token // the tokens with which users have connected, by name
}

// serve accepts connections until ctx ends. Then running turns have the time grace, unless the
// program is asked to end once more.
func (n *network) serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	server := &http.Server{
		Handler: n.handler(),
		// These times end when a request becomes a connection.
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	var watching sync.WaitGroup
	defer watching.Wait()
	served, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	watching.Go(func() { n.endRevoked(served) })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	n.draining.Store(true)
	waiting, cancel := context.WithTimeout(served, grace)
	defer cancel()
	waiting, stop := signal.NotifyContext(waiting, endSignals()...)
	defer stop()
	if err := n.peers.Shutdown(waiting); err != nil {
		n.log.Warn("ended turns that were still running")
	}
	err := server.Close()
	<-ended
	return err
}

// load returns what the server does now.
func (n *network) load() serverLoad {
	l := serverLoad{Limits: n.peers.Used(), children: countChildren()}
	l.lost, l.unconfirmed = n.acceptor.Waiting()
	return l
}

func (n *network) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+websocket.Path, n.connect)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if n.draining.Load() {
			http.Error(w, shuttingDown, http.StatusServiceUnavailable)
		}
	})
	return mux
}

// maxConnections is how many connections a user may have.
const maxConnections = 100

// makeRoom ends connections that a user has lost, the oldest first, if there is no room for a new
// one. The user cannot close them, and they would stay until nobody may resume them.
func (n *network) makeRoom(ctx context.Context, user string) {
	for n.peers.UsedBy(user).Connections >= maxConnections && n.acceptor.EndLost(ctx, user) {
	}
}

const shuttingDown = "the server is shutting down"

// connect serves a connection.
func (n *network) connect(w http.ResponseWriter, r *http.Request) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	user, err := n.tokens.Find(secret)
	from := []any{"from", r.RemoteAddr}
	if n.behindProxy {
		const most = 200
		forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
		from = append(from, "forwardedFor", text.Truncate(forwarded, most))
	}
	log, audit := n.log.With(from...), n.audit.With(from...)
	switch {
	case err != nil && !errors.Is(err, token.ErrInvalid):
		n.metrics.reject()
		log.Error("cannot read a token", "error", err)
		http.Error(w, "the server cannot read the token of this user; its log says why",
			http.StatusServiceUnavailable)
		return
	case err != nil || !strings.EqualFold(scheme, "Bearer"):
		n.metrics.reject()
		log.Warn("rejected a connection without a valid token")
		audit.Info("rejected a connection without a valid token")
		w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
		http.Error(w, "a valid token is required; acp-agent tokens add, on the server, prints one",
			http.StatusUnauthorized)
		return
	case n.draining.Load() && !websocket.Resumes(r):
		http.Error(w, shuttingDown, http.StatusServiceUnavailable)
		return
	}
	from = append([]any{"user", user.Name}, from...)
	log, audit = n.log.With(from...), n.audit.With(from...)
	n.admit(user)
	if !websocket.Resumes(r) {
		n.makeRoom(r.Context(), user.Name)
	}
	conn, err := n.acceptor.Accept(w, r, user.Name)
	switch {
	case err != nil:
		n.metrics.reject()
		log.Warn("rejected a connection", "error", err)
		return
	case conn == nil:
		log.Info("resumed a connection")
		return
	}
	log.Info("connected")
	audit.Info("connected")
	defer audit.Info("disconnected")
	peer := acp.Peer{Principal: user.Name, Remote: true}
	if err := n.peers.Serve(context.WithoutCancel(r.Context()), conn, peer); err != nil {
		log = log.With("error", err)
	}
	log.Info("disconnected")
}

// admit notes with which token a user connects, and ends what goes on by virtue of an older one.
func (n *network) admit(user token.Token) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.users[user.Name]; ok && !old.Same(user) {
		n.peers.End(user.Name)
	}
	n.users[user.Name] = user
}

// endRevoked ends what goes on for users whose tokens are no longer valid, once a second until ctx
// ends. A token that cannot be read stays valid: that may be over soon.
func (n *network) endRevoked(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n.mu.Lock()
		for name, user := range n.users {
			now, err := n.tokens.Get(name)
			revoked := errors.Is(err, fs.ErrNotExist) || err == nil && !now.Same(user)
			if revoked && n.peers.End(name) {
				n.log.Info("the token was revoked", "user", name)
			}
		}
		n.mu.Unlock()
	}
}
