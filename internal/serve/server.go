// Package serve serves users over the network, and connects an editor to such a server. Its caller
// decides what answers a user: the agent, the store, the folders.
//
// admit.go makes a connection of a user of a request, accounts.go, devices.go and user_header.go
// say who that is, and user.go what the connection is served with. link.go is the other side,
// between an editor and a server, conversation.go knows what was said over it, and handover.go goes
// on with the next server when one has ended.
//
// Package websocket has the connections themselves, package budget limits the memory for their
// messages, and acp.Server the sessions and turns.
package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure a [Server]. All of them are required, except where it says otherwise.
type Options struct {
	// Accounts say who may connect.
	Accounts *Accounts
	// Serving returns the options of a user's connection, such as the backend. The server sets
	// Workspace, Store, Logger and Observe. It may be called concurrently.
	Serving func(User) (acp.Options, error)
	// Workspace are the options for opening roots, of all users.
	Workspace workspace.Options
	// Store has the sessions of all users.
	Store sessionstore.Shared
	// MaxLine is the size of the longest message, in bytes.
	MaxLine int
	// Limits are what a user may use at once, unless the account says otherwise.
	Limits acp.Limits
	// StoredBytes is how much each user's sessions may take in the store, unless the account says
	// otherwise. Default: any amount.
	StoredBytes int
	// DeleteAfter is after which time without a turn users' sessions are deleted. Default never;
	// but sessions that were never prompted are deleted after [sessionstore.Retention].
	DeleteAfter time.Duration
	// Memory is how many bytes of messages may be arriving or unanswered, of all users.
	Memory int
	// Origins are the web pages that may connect besides the server's own. Default none.
	Origins Origins
	// Page makes the server serve a page for the browsers of users, at /.
	Page bool
	// Notify is the command that is told what waits for absent users (notify.go). Default none.
	Notify *process.Command
	// UserHeader names users whom a proxy knows. Default none.
	UserHeader UserHeader
	// BehindProxy notes who is behind something that passes on the connections.
	BehindProxy bool
	// Grace is how long running turns may take after the server was asked to end, unless the
	// program gets one of the signals HurryUp. Default none.
	Grace   time.Duration
	HurryUp []os.Signal
	// Version is that of the program, for the metrics.
	Version string
	// Log is for the operator. Audit notes who connected and did what.
	Log, Audit *slog.Logger
	// AuditErr returns why the last line of the audit log was not written, nil if it was. If there
	// is such a reason, the server serves nobody.
	AuditErr func() error
}

// Server serves the connections of users who have a token.
type Server struct {
	options   Options
	messages  *budget.Budget
	acceptor  *websocket.Acceptor
	acp       *acp.Server
	metrics   *metrics
	notifier  *notifier
	health    health
	connected atomic.Int64 // connections so far
	draining  atomic.Bool  // there are no new connections

	mu    sync.Mutex
	users map[string]Account       // those who have connected, by name
	conns map[string]*admitted     // the connections, by id
	paces map[string]*rate.Limiter // of those who have connected at some time, by name
}

// NewServer returns a server.
func NewServer(o Options) *Server {
	messages := messageBudget(o.Memory, o.MaxLine)
	s := &Server{
		options:  o,
		messages: messages,
		acceptor: websocket.NewAcceptor(websocket.Times{}, messages),
		health:   health{store: o.Store, log: o.Log},
		users:    make(map[string]Account), conns: make(map[string]*admitted),
		paces: make(map[string]*rate.Limiter),
	}
	s.acp = acp.NewServer(acp.ServerOptions{PerPeer: o.Limits, Options: s.serving})
	s.metrics = newMetrics(o.Version)
	s.notifier = newNotifier(o)
	return s
}

// Path is where an ACP server accepts connections.
const Path = "/acp"

// ServeMetrics serves the metrics of the server on listener, at the path /metrics, until the caller
// calls end.
func (s *Server) ServeMetrics(listener net.Listener) (end func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, s.metrics.text(s.usage()))
	})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return func() {
		_ = server.Close()
		serving.Wait()
	}
}

// Serve accepts connections until ctx ends. Then it waits for running turns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	served, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s.handler(), BaseContext: func(net.Listener) context.Context { return served },
		// These times end when a request becomes a connection.
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, stop := context.WithCancel(served)
	defer stop()
	watching.Go(func() {
		for range pause.Every(watched, time.Second) {
			s.endRevoked()
			s.endUnaudited()
		}
	})
	watching.Go(func() { s.retain(watched) })
	watching.Go(func() { s.notifier.run(watched) })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain(served)
	err := server.Close()
	<-ended
	return err
}

// drain accepts no new connections, and waits for running turns before it ends them.
func (s *Server) drain(ctx context.Context) {
	s.draining.Store(true)
	waiting, cancel := context.WithTimeout(ctx, s.options.Grace)
	defer cancel()
	waiting, stop := signal.NotifyContext(waiting, s.options.HurryUp...)
	defer stop()
	if err := s.acp.Shutdown(waiting); err != nil {
		s.options.Log.Warn("ended turns that were still running")
	}
}

// usage returns what the server does now.
func (s *Server) usage() usage {
	u := usage{Limits: s.acp.Used(), children: countChildren()}
	u.lost, u.unconfirmed = s.acceptor.Waiting()
	if s.health.check(context.Background()) == nil {
		u.store = 1
	}
	return u
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, s.connect)
	mux.HandleFunc(Path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "connect with WebSocket: this server does not speak Streamable HTTP",
			http.StatusMethodNotAllowed)
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.draining.Load():
			http.Error(w, shuttingDown, http.StatusServiceUnavailable)
		case s.options.AuditErr() != nil:
			http.Error(w, auditFails, http.StatusServiceUnavailable)
		case s.health.check(r.Context()) != nil:
			http.Error(w, "the session store cannot be used; the log says why",
				http.StatusServiceUnavailable)
		}
	})
	if !s.options.Page {
		return mux
	}
	s.addPage(mux)
	return s.withPage(mux)
}

// auditFails tells users that the audit log cannot be written.
const auditFails = "the server cannot write its audit log, and serves nobody without it"

const shuttingDown = "the server is shutting down"

// retain deletes the users' old sessions every hour, until ctx ends.
func (s *Server) retain(ctx context.Context) {
	for now := range pause.Every(ctx, time.Hour) {
		if err := s.deleteOld(ctx, now); err != nil && ctx.Err() == nil {
			s.options.Log.Warn("cannot delete old sessions; it is tried again", "error", err)
		}
	}
}

// deleteOld deletes the sessions of users that are too old, also those of users who were revoked.
// Sessions of the local user stay.
func (s *Server) deleteOld(ctx context.Context, now time.Time) error {
	q := sessionstore.PruneQuery{UnusedBefore: now.Add(-sessionstore.Retention)}
	if age := s.options.DeleteAfter; age > 0 {
		q.Before = now.Add(-age)
	}
	owners, err := s.options.Store.Owners(ctx)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if owner == "" {
			continue
		}
		n, err := s.options.Store.For(owner).Prune(ctx, q)
		if n > 0 {
			s.options.Log.Info("deleted old sessions: "+text.Count(n, "session", "sessions"),
				"user", owner)
			s.options.Audit.Info("deleted old sessions", "user", owner, "sessions", n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
