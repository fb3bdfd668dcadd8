package mcprelay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
)

// Options configure a relay. Address and Secret are needed.
type Options struct {
	// Address is the publisher's, Secret what it must be told.
	Address, Secret string
	// ConnectTimeout is how long it may take until the publisher has told its roots. Default 5 s.
	ConnectTimeout time.Duration
	// MaxMessage is the most bytes of a line that are looked at; a longer one passes as it is. Default 64 MiB.
	MaxMessage int
	// MaxHeld is the most bytes of calls that are held because they might have to be repeated. Default four times
	// MaxMessage.
	MaxHeld int
	// MaxOwn is the most bytes of the relay's own messages that wait for a peer to read. Default twice MaxMessage.
	MaxOwn int
	// MaxRounds is how often one call is sent because the server asked for roots. Default 10.
	MaxRounds int
	// MaxQuestions is how many questions one result may ask. Default 100.
	MaxQuestions int
	// EndGrace is how long calls that are held are waited for when the client's input has ended. Default 1 s.
	EndGrace time.Duration
	// Logger takes what goes wrong. Default: discarded.
	Logger *slog.Logger
	// Child are the options of the server's process. Its grace is 1 s by default.
	Child process.Options
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.MaxHeld = cmp.Or(o.MaxHeld, 4*o.MaxMessage)
	o.MaxOwn = cmp.Or(o.MaxOwn, 2*o.MaxMessage)
	o.MaxRounds = cmp.Or(o.MaxRounds, 10)
	o.MaxQuestions = cmp.Or(o.MaxQuestions, 100)
	o.EndGrace = cmp.Or(o.EndGrace, time.Second)
	o.Child.Grace = cmp.Or(o.Child.Grace, time.Second)
	return o
}

// Run connects to the publisher, starts a server, and stands between it and the client that writes to in and reads
// from out, until the server ends, in does, or ctx. The server and its process group are ended then. The
// error is a [*SocketError] or a [*RefusedError] if there are no roots, a [*child.StartError] if there is no server, and a
// [*child.ExitError] if it ended other than with status 0 and not by our signal. A read from in that blocks may go on after it, as
// may a write to out.
func Run(ctx context.Context, in io.Reader, out io.Writer, server process.Command, o Options) error {
	o = o.withDefaults()
	s, err := subscribe(ctx, o.Address, o.Secret, o.ConnectTimeout, o.Logger)
	if err != nil {
		return err
	}
	defer s.close()
	server.Env = append(server.Env[:len(server.Env):len(server.Env)], SecretVariable+"=")
	p, err := process.Start(ctx, server, o.Child)
	if err != nil {
		return err
	}
	r := newRelay(o, s.roots, out, p.Stdin())
	s.follow(r.changed)
	return r.run(ctx, in, p)
}

// run passes lines until one of the three ends, and then ends the server.
func (r *relay) run(ctx context.Context, in io.Reader, p *process.Process) error {
	var passing sync.WaitGroup
	done := make(chan struct{})
	passing.Go(func() { r.server.run(done) })
	passing.Go(func() { r.client.run(done) })
	read, ended := make(chan error, 1), make(chan error, 1)
	go func() { read <- r.fromClient(in) }()
	passing.Go(func() { ended <- r.fromServer(p.Stdout()) })
	var failure error
	ours := true
	select {
	case failure = <-read:
		r.finish(ctx, p)
	case failure = <-ended:
		ours = failure != nil
	case <-ctx.Done():
	}
	err := stop(ctx, p)
	close(done)
	within(writeGrace, &passing)
	_ = p.Stdout().Close()
	var exit *process.ExitError
	if errors.As(err, &exit) && exit.Code < 0 && ours {
		err = nil // the signal was ours
	}
	return errors.Join(err, failure)
}

// stop ends the server, and says how it ended.
func stop(ctx context.Context, p *process.Process) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Wait(context.WithoutCancel(ctx))
}

// writeGrace is how long a client may take to read the last of what the server said.
const writeGrace = 500 * time.Millisecond

// within waits for a group, but not longer than a grace.
func within(grace time.Duration, group *sync.WaitGroup) {
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		group.Wait()
	}()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-waited:
	case <-late.C:
	}
}

// stopWithin bounds the end of a server that ignores it, with what comes before, below the 3 s of W9.
const stopWithin = 1500 * time.Millisecond

// finish waits for the calls that the relay may have to repeat.
func (r *relay) finish(ctx context.Context, p *process.Process) {
	late := time.NewTimer(r.options.EndGrace)
	defer late.Stop()
	select {
	case <-r.calls.none():
	case <-p.Done():
	case <-late.C:
	case <-ctx.Done():
	}
}

// RefusedError: a publisher that does not tell its roots.
type RefusedError struct {
	// Address is its socket.
	Address string
	// Err is the cause.
	Err error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the session at %s does not tell its roots: %v (the secret in %s is not its own, or it has just ended)", e.Address, e.Err, SecretVariable)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// maxList is the most bytes of a list of roots.
const maxList = 16 << 20

// subscription is a relay's connection to its publisher.
type subscription struct {
	conn    net.Conn
	in      *jsonrpc.Reader
	log     *slog.Logger
	reading sync.WaitGroup

	mu     sync.Mutex
	list   json.RawMessage
	closed bool
}

// subscribe connects, and waits for the first list. The error is a [*SocketError] or a [*RefusedError].
func subscribe(ctx context.Context, address, secret string, within time.Duration, log *slog.Logger) (*subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", address)
	if err != nil {
		return nil, &SocketError{Path: address, Hint: "the session that it was made for has ended", Err: err}
	}
	s := &subscription{conn: conn, in: jsonrpc.NewReader(conn, maxList), log: log}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if _, err = io.WriteString(conn, secret+"\n"); err == nil {
		s.list, err = s.next()
	}
	if intime := stop(); err != nil || !intime {
		_ = conn.Close()
		if !intime {
			err = context.Cause(ctx)
		}
		return nil, &RefusedError{Address: address, Err: err}
	}
	return s, nil
}

// follow takes the lists that come from now on, and calls change after each.
func (s *subscription) follow(change func()) {
	s.reading.Go(func() {
		for {
			list, err := s.next()
			if err != nil {
				s.ended(err)
				return
			}
			s.mu.Lock()
			s.list = list
			s.mu.Unlock()
			change()
		}
	})
}

// next reads a list.
func (s *subscription) next() (json.RawMessage, error) {
	line, err := s.in.Append(nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Roots []json.RawMessage `json:"roots"`
	}
	if err := json.Unmarshal(line, &list); err != nil || list.Roots == nil {
		return nil, errors.New("it sent what is no list of roots")
	}
	return bytes.TrimSpace(line), nil
}

// ended says that no list will come any more.
func (s *subscription) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.log.Warn("the session does not tell its roots any more: the last list stays", "reason", err)
	}
}

// roots is the newest list, as a result of roots/list.
func (s *subscription) roots() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *subscription) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.conn.Close()
	s.reading.Wait()
}
