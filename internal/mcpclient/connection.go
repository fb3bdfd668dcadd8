package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
)

// link is one connection to a server: a process, or a remote.
type link struct {
	server  *server
	session *mcproots.Session
	process *process.Process // nil for a remote
	lines   *lines           // nil for a remote
	remote  *remote          // nil for a process
	cancel  context.CancelCauseFunc
	barrier *barrier
	ended   chan struct{} // closed when the connection is over
	lists   lists
	calls   calls

	mu     sync.Mutex
	told   []string
	toldAt time.Time
}

var errStopped = errors.New("the server was stopped")

// connect starts a process or connects to a remote. ctx is for that alone.
func (s *server) connect(ctx context.Context, revision string) (*link, error) {
	l := &link{server: s, barrier: newBarrier(s.config.Policy, s.set.options.SettleMax), ended: make(chan struct{})}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.cancel = cancel
	transport, err := l.open(ctx, life)
	if err == nil {
		// The SDK ties some connections to the context that begins them.
		begun := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		var session *mcproots.Session
		session, err = l.client().Connect(life, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		begun()
		l.mu.Lock()
		l.session = session
		l.mu.Unlock()
	}
	if err != nil {
		if life.Err() != nil {
			err = context.Cause(life)
		}
		return nil, l.abandon(ctx, err)
	}
	go func() {
		_ = l.session.Wait()
		l.calls.end()
		close(l.ended)
	}()
	return l, nil
}

// open makes the transport.
func (l *link) open(ctx, life context.Context) (mcp.Transport, error) {
	s := l.server
	if s.config.Transport != Stdio {
		r, err := newRemote(life, l.cancel, s.config, s.set.options)
		if err != nil {
			return nil, err
		}
		l.remote = r
		return r.over(s.config.Transport), nil
	}
	cwd, roots := s.set.place()
	args, env, err := expanded(s.config, roots)
	if err != nil {
		return nil, err
	}
	c := process.Command{Path: s.config.Command, Args: args, Dir: cmp.Or(s.config.Dir, cwd), Name: s.config.Name}
	for _, p := range env {
		c.Env = append(c.Env, p.Name+"="+p.Value)
	}
	o := s.set.options.Child
	o.Logger = s.log
	if l.process, err = process.Start(ctx, c, o); err != nil {
		return nil, err
	}
	l.lines = newLines(l.process.Stdout(), l.process.Stdin(), s.set.options, s.log)
	return l.lines, nil
}

// client makes the client of this connection, and of no other.
func (l *link) client() *mcproots.Client {
	s := l.server
	o := mcproots.Options{
		ProbeTimeout: s.set.options.ProbeTimeout,
		SDK: mcp.ClientOptions{
			Logger:                      s.log,
			ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { l.lists.tools.forget() },
			PromptListChangedHandler:    func(context.Context, *mcp.PromptListChangedRequest) { l.lists.prompts.forget() },
			ResourceListChangedHandler:  func(context.Context, *mcp.ResourceListChangedRequest) { l.lists.resources.forget() },
			LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { l.message(r.Params) },
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { l.calls.progress(r.Params) },
		},
	}
	if s.config.rootsOn() {
		o.Roots, o.Told = s.set.current, l.asked
	}
	return mcproots.NewClient(&mcp.Implementation{Name: s.set.options.Name, Version: s.set.options.Version}, o)
}

// close ends the connection and its process group, and waits for them. When ctx ends it is done the hard way.
func (l *link) close(ctx context.Context) {
	l.calls.end()
	if l.process != nil {
		l.stopProcess(ctx)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = l.session.Close()
	}()
	timer := time.NewTimer(l.server.set.options.NotifyTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-ctx.Done():
	case <-timer.C:
	}
	l.cancel(errStopped)
	<-closed
	<-l.ended
	if l.remote != nil {
		l.remote.close()
	}
}

func (l *link) stopProcess(ctx context.Context) {
	_ = l.lines.Close()
	if err := l.process.Stop(ctx); err != nil {
		l.server.log.Error("an MCP server does not end", "error", err)
	}
	l.lines.writer.Wait()
}

// abandon undoes what connect began, and says why it failed: what the process said last is worth more than that the
// connection broke.
func (l *link) abandon(ctx context.Context, cause error) error {
	defer l.cancel(errStopped)
	if l.remote != nil {
		l.remote.close()
		return cause
	}
	if l.process == nil {
		return cause
	}
	why := l.lines.why()
	l.stopProcess(ctx)
	return l.exit(cause, why)
}

// exit is why a process is no longer there; broken is what ended its connection.
func (l *link) exit(cause, broken error) error {
	var long *MessageError
	var unread *UnreadError
	if errors.As(broken, &long) || errors.As(broken, &unread) {
		return broken
	}
	theirs := errors.Is(broken, io.EOF) || errors.Is(broken, syscall.EPIPE) || errors.Is(broken, os.ErrClosed)
	if broken == errClosedHere || !theirs {
		return cause
	}
	if err := l.process.Wait(context.Background()); err != nil {
		return err
	}
	return fmt.Errorf("it ended by itself, with status 0; what it wrote to stderr is in the log at level info, under child=%s", l.process.Name())
}

// What a connected server is told of the roots, and when it may be called after that.

// asked: the server was told the roots.
func (l *link) asked(roots mcproots.Snapshot) {
	l.barrier.answered()
	l.mu.Lock()
	l.told, l.toldAt = roots.URIs(), time.Now()
	l.mu.Unlock()
	if l.modern() {
		l.server.warn(featureRoots)
	}
}

// modern reports whether the server is known to be one. Its messages can come before Connect has returned.
func (l *link) modern() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil && l.session.Modern()
}

// knows reports what the server was told last, and when.
func (l *link) knows() ([]string, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told), l.toldAt
}

// begin is called once the server is connected, when its first roots are to be waited for.
func (l *link) begin() {
	if l.server.config.rootsOn() && !l.session.Modern() && l.barrier.shut() && !l.server.set.spawn(l.settle) {
		l.barrier.lift()
	}
	r := l.session.InitializeResult()
	switch {
	case r.Capabilities == nil || r.Capabilities.Logging == nil:
	case l.session.Modern():
		l.server.warn(featureLogging)
	default:
		l.server.set.spawn(l.wantMessages)
	}
}

// settle opens the barrier once the server has had time to read the roots.
func (l *link) settle() {
	ctx, cancel := context.WithCancel(l.server.context)
	defer cancel()
	l.barrier.settle(ctx, func(ctx context.Context) error {
		err := l.session.Ping(ctx, nil)
		if refusal := (*jsonrpc.Error)(nil); errors.As(err, &refusal) {
			return nil // an answer too
		}
		return err
	})
}

// tell tells the server of new roots, and shuts the barrier until it has had time to read them.
func (l *link) tell() {
	if !l.server.config.rootsOn() || l.session.Modern() {
		return
	}
	wasOpen := l.barrier.shut()
	told := l.server.set.spawn(func() {
		l.announce()
		if wasOpen {
			l.settle()
		}
	})
	if !told {
		l.barrier.lift()
	}
}

// isReady reports whether calls can be sent at once.
func (l *link) isReady() bool {
	if l.calls.ended() {
		return false
	}
	select {
	case <-l.barrier.passed():
		return true
	default:
		return false
	}
}

// announce tells the server that the roots have changed, and waits a bounded time until it took the message.
func (l *link) announce() {
	if l.session.Modern() || !l.server.config.rootsOn() {
		return
	}
	done := make(chan struct{})
	l.server.set.running.Go(func() {
		defer close(done)
		l.session.Announce()
	})
	timer := time.NewTimer(l.server.set.options.NotifyTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-l.ended:
	case <-timer.C:
		l.server.log.Warn("an MCP server does not take the notice that the roots have changed", "waited", l.server.set.options.NotifyTimeout)
	}
}

// wantMessages asks a legacy server for its log messages, which some send only then.
func (l *link) wantMessages() {
	ctx, cancel := context.WithTimeout(l.server.context, l.server.set.options.NotifyTimeout)
	defer cancel()
	if err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		l.server.log.Debug("an MCP server does not take a logging level", "error", err)
	}
}

// message passes a log message of the server to our log.
func (l *link) message(p *mcp.LoggingMessageParams) {
	if p == nil {
		return
	}
	level := slog.LevelInfo
	switch p.Level {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		level = slog.LevelError
	}
	text := cut(fmt.Sprint(p.Data), cmp.Or(l.server.set.options.Child.MaxLogLine, 4<<10))
	l.server.log.Log(context.Background(), level, "MCP server: "+text, "logger", cut(p.Logger, 100))
	if l.modern() {
		l.server.warn(featureLogging)
	}
}
