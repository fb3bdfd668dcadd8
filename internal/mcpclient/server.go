package mcpclient

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
)

// server is one server of a session, from its configuration on. A goroutine, run, is its life while it is needed.
type server struct {
	set      *Set
	config   Config
	log      *slog.Logger
	scrubber scrubber
	restarts chan []mcproots.Root // asks run to connect anew, with the roots that were lost
	context  context.Context      // ends with the server
	stop     context.CancelCauseFunc

	mu       sync.Mutex
	state    backend.ServerState
	err      error
	running  bool // run runs
	link     *link
	changed  chan struct{}
	again    time.Time // when a failed server may be tried again
	legacy   bool      // it is known to be of the old era
	count    int       // restarts
	failures int       // in a row, before the current start
	warnings []feature
	always   map[[sha256.Size]byte]bool // the tools that the user always allows, by their fingerprints
}

func (s *Set) newServer(c Config) *server {
	scrubber := newScrubber(c.secrets())
	base, stop := context.WithCancelCause(s.base)
	return &server{
		set: s, config: c, scrubber: scrubber, log: scrubber.logger(s.options.Logger.With("server", c.Name)),
		restarts: make(chan []mcproots.Root, 1), context: base, stop: stop,
		state: backend.ServerIdle, changed: make(chan struct{}), always: map[[sha256.Size]byte]bool{},
	}
}

// need starts the server unless it runs, or has just failed.
func (s *server) need() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.context.Err() != nil || time.Now().Before(s.again) {
		return
	}
	select { // a restart that was asked for when it ended comes now anyway
	case <-s.restarts:
	default:
	}
	if s.set.spawn(s.run) {
		s.running = true
		s.turn(backend.ServerStarting, nil)
	}
}

// turn changes the state. The caller holds mu.
func (s *server) turn(to backend.ServerState, err error) {
	s.state, s.err = to, err
	close(s.changed)
	s.changed = make(chan struct{})
}

// run keeps the server going until it is stopped, or fails for good.
func (s *server) run() {
	failures := 0
	for {
		l, err := s.start()
		if err == nil {
			began := time.Now()
			err = s.serve(l)
			if errors.Is(err, errAgain) {
				failures = 0
				continue
			}
			if time.Since(began) >= s.set.options.Stable {
				failures = 0
			}
		}
		if s.context.Err() != nil {
			s.end(backend.ServerStopped, nil, 0)
			return
		}
		failures++
		wait := min(s.set.options.Backoff<<min(failures-1, 20), s.set.options.MaxBackoff)
		err = &FailedError{Server: s.config.Name, Err: s.scrubber.err(err)}
		if hopeless(err) || failures > s.set.options.MaxRestarts {
			s.log.Error("an MCP server cannot be used", "error", err)
			s.end(backend.ServerFailed, err, wait)
			return
		}
		s.log.Warn("an MCP server is started again", "error", err, "in", wait)
		s.rest(err, wait, failures)
	}
}

// hopeless reports whether trying again at once is of no use.
func hopeless(err error) bool {
	var start *process.StartError
	var missing *exec.Error
	var template *TemplateError
	return errors.As(err, &start) || errors.As(err, &missing) || errors.As(err, &template)
}

// end is the end of run.
func (s *server) end(state backend.ServerState, err error, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.link, s.again = false, nil, time.Now().Add(wait)
	s.turn(state, err)
}

// rest waits before the next start. A restart that is asked for meanwhile has come anyway.
func (s *server) rest(err error, wait time.Duration, failures int) {
	s.mu.Lock()
	s.count++
	s.failures = failures
	s.turn(backend.ServerWaiting, err)
	s.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.restarts:
	case <-s.context.Done():
	}
}

// start connects, when its turn has come.
func (s *server) start() (*link, error) {
	end, err := s.set.starter.begin(s.context)
	if err != nil {
		return nil, err
	}
	defer end()
	s.mu.Lock()
	s.turn(backend.ServerStarting, nil)
	revision := ""
	if s.legacy {
		revision = newestLegacy
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(s.context, s.set.options.StartTimeout,
		&LateError{Server: s.config.Name, What: "answered initialize", Bound: s.set.options.StartTimeout})
	defer cancel()
	l, err := s.connect(ctx, revision)
	if err != nil && revision == "" && s.config.Transport == Stdio && !hopeless(err) && ctx.Err() == nil {
		// Some servers end at a question that they do not know.
		s.log.Debug("an MCP server could not be connected; trying the older way", "error", err)
		l, err = s.connect(ctx, newestLegacy)
	}
	return l, err
}

// newestLegacy is the last revision with initialize.
const newestLegacy = "2025-11-25"

// errAgain: a restart was asked for.
var errAgain = errors.New("the server is restarted")

// serve is the time of one connection. It returns why that is over, when it is closed.
func (s *server) serve(l *link) error {
	l.begin()
	s.mu.Lock()
	select {
	case lost := <-s.restarts: // asked for while it started: nobody is to call it
		s.mu.Unlock()
		s.told(l, lost)
		s.close(l)
		return errAgain
	default:
	}
	s.link, s.legacy = l, !l.session.Modern()
	s.turn(backend.ServerStarting, nil)
	s.mu.Unlock()
	if s.toldOld(l) {
		l.tell()
	}
	s.log.Info("MCP server connected", "revision", l.session.InitializeResult().ProtocolVersion)
	settled := l.barrier.passed()
	for {
		select {
		case <-settled:
			settled = nil
			s.mu.Lock()
			if s.link == l {
				s.turn(backend.ServerReady, nil)
			}
			s.mu.Unlock()
		case <-l.ended:
			err := s.lost(l)
			s.close(l)
			return err
		case lost := <-s.restarts:
			s.told(l, lost)
			s.close(l)
			return errAgain
		case <-s.context.Done():
			s.close(l)
			return context.Cause(s.context)
		}
	}
}

// toldOld reports whether the server was told roots, while it started, that have changed since.
func (s *server) toldOld(l *link) bool {
	told, _ := l.knows()
	now, err := s.set.current(s.context)
	return told != nil && err == nil && !slices.Equal(told, now.URIs())
}

// lost is why a connection ended by itself.
func (s *server) lost(l *link) error {
	err := l.session.Wait()
	if err == nil {
		err = errors.New("it closed the connection")
	}
	if l.process != nil {
		broken := l.lines.why()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.context), s.set.options.StopTimeout)
		defer cancel()
		l.stopProcess(ctx)
		err = l.exit(err, broken)
	}
	return err
}

// close takes the link away from whoever would use it, and ends it.
func (s *server) close(l *link) {
	s.mu.Lock()
	s.link = nil
	s.turn(backend.ServerStarting, nil)
	s.mu.Unlock()
	ctx, cancel := s.set.stopping()
	defer cancel()
	l.close(ctx)
}

// told says to a server that is about to be restarted, and to the user, why.
func (s *server) told(l *link, lost []mcproots.Root) {
	if known, _ := l.knows(); len(lost) == 0 || known == nil {
		return
	}
	l.announce()
	s.log.Info("an MCP server is connected anew, because the session has lost a root that it knows", "roots", len(lost))
	s.set.say("The MCP server " + named(s.config.Name) + " is started again, because it knows " + describe(lost) + ", which this session no longer has.")
}

// ready waits until the server takes calls.
func (s *server) ready(ctx context.Context) (*link, error) {
	if l := s.connected(); l != nil && l.isReady() {
		return l, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.set.options.Wait,
		&LateError{Server: s.config.Name, What: "become ready", Bound: s.set.options.Wait})
	defer cancel()
	s.need()
	for {
		s.mu.Lock()
		l, state, err, changed, failures := s.link, s.state, s.err, s.changed, s.failures
		s.mu.Unlock()
		switch {
		case l != nil && !l.calls.ended():
			select {
			case <-l.barrier.passed():
				return l, nil
			case <-changed:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		case state == backend.ServerFailed, state == backend.ServerWaiting && failures > 1:
			return nil, err // it may come yet, but is not worth waiting for
		case state == backend.ServerStopped:
			return nil, backend.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connected is the server's connection, nil if it has none.
func (s *server) connected() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// status is the server as a person is told of it.
func (s *server) status(prefix string) backend.ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := backend.ServerStatus{
		Name: s.config.Name, Prefix: prefix, Transport: string(s.config.Transport), State: s.state, Err: s.err,
		Restarts: s.count, RootsDeclared: s.config.rootsOn(),
	}
	for _, f := range s.warnings {
		status.Warnings = append(status.Warnings, string(f))
	}
	if s.link == nil {
		return status
	}
	r := s.link.session.InitializeResult()
	status.Revision, status.Modern = r.ProtocolVersion, s.link.session.Modern()
	if r.ServerInfo != nil {
		status.Product = named(r.ServerInfo.Name) + " " + named(r.ServerInfo.Version)
	}
	status.SentRoots, status.SentAt = s.link.knows()
	return status
}

// rootsChanged tells the server of new roots, or has it connected anew (M3).
func (s *server) rootsChanged(lost []mcproots.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return
	}
	l := s.link
	if s.outdated(l, lost) {
		// Whoever calls now waits for the new connection.
		s.link = nil
		s.turn(backend.ServerStarting, nil)
		select {
		case <-s.restarts:
		default:
		}
		s.restarts <- lost
		return
	}
	if l != nil {
		l.tell()
	}
}

// outdated reports whether a connection cannot go on with the new roots. l is nil for one that is just being made,
// of which nobody can say yet what it was told.
func (s *server) outdated(l *link, lost []mcproots.Root) bool {
	switch {
	case s.config.Transport == Stdio && s.config.Policy.Templates == On:
		return true
	case len(lost) == 0 || s.config.Policy.OnShrink == Notify || !s.config.rootsOn():
		return false
	case s.config.Transport != Stdio || l == nil:
		return true
	default:
		told, _ := l.knows()
		return told != nil
	}
}

// retire marks a server that was stopped before it was ever started.
func (s *server) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.turn(backend.ServerStopped, nil)
	}
}

// feature is what revision 2026-07-28 deprecates, with what takes its place.
type feature string

const (
	featureRoots feature = "this server asks for roots, which MCP deprecates since 2026-07-28 and may drop after 2027-07-28: " +
		"it can be given them in its arguments or environment instead, by templates such as ${roots}"
	featureLogging feature = "this server sends log messages by MCP, which deprecates that since 2026-07-28: its stderr is in the log anyway"
)

// warn says once for each server that it uses something deprecated (M7).
func (s *server) warn(f feature) {
	s.mu.Lock()
	known := slices.Contains(s.warnings, f)
	if !known {
		s.warnings = append(s.warnings, f)
	}
	s.mu.Unlock()
	if !known {
		s.log.Warn(string(f))
	}
}
