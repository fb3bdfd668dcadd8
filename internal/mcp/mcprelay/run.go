package mcprelay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Options configure a relay.
type Options struct {
	// Address is the path of the publisher's socket, "" for none, and Secret what the publisher
	// expects.
	Address, Secret string
	// Server is the name that the session has for the server, in its rules about tools.
	Server string
	// MaxMessage is the longest line that is passed on, in bytes. Longer lines are answered with an
	// error. Default 64 MiB.
	MaxMessage int
	// Logger receives warnings. Default: discarded.
	Logger *slog.Logger
	// Child configures the server's process. Its Grace defaults to 1 s.
	Child process.Options
}

func (o Options) withDefaults() Options {
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Child.Grace = cmp.Or(o.Child.Grace, time.Second)
	return o
}

const (
	// stopTimeout bounds how long stopping the server may take, so that the relay ends within 3 s.
	stopTimeout = 1500 * time.Millisecond
	// drainTimeout is how long the client may take to read the server's last messages.
	drainTimeout = 500 * time.Millisecond
)

// Run starts a server and relays between it and the client, which writes to in and reads from out,
// until the server ends, in ends, or ctx ends. It then ends the server and its process group. If
// the publisher cannot be reached, messages pass unchanged. The error is a [*process.StartError] if
// the server cannot be started, and a [*process.ExitError] if it ended by itself with another
// status than 0. A blocked read from in or write to out may continue after Run has returned.
func Run(
	ctx context.Context, in io.Reader, out io.Writer, server process.Command, o Options,
) error {
	o = o.withDefaults()
	roots := subscribe(ctx, o)
	defer roots.close()
	server.Env = append(slices.Clip(server.Env), SecretVariable+"=") // not for the server
	p, err := process.Start(ctx, server, o.Child)
	if err != nil {
		return err
	}
	r := newRelay(o, roots.current, out, p.Stdin())
	done := make(chan struct{})
	defer close(done)
	go r.server.writeQueued(done)
	go r.client.writeQueued(done)
	go roots.follow(r.rootsChanged)
	clientEnd, serverEnd := make(chan error, 1), make(chan error, 1)
	go func() { clientEnd <- r.relayClient(in) }()
	go func() { serverEnd <- r.relayServer(p.Stdout()) }()
	var failure error
	stopped := true // by us
	select {
	case failure = <-clientEnd:
	case failure = <-serverEnd:
		stopped = failure != nil
		serverEnd <- nil
	case <-ctx.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err = p.Stop(stopCtx); err == nil {
		err = p.Wait(context.WithoutCancel(ctx))
	}
	select {
	case <-serverEnd: // the client has read all that the server sent
	case <-time.After(drainTimeout):
	}
	_ = p.Stdout().Close()
	if exit, ok := errors.AsType[*process.ExitError](err); ok && exit.Code < 0 && stopped {
		err = nil // our signal ended it
	}
	return errors.Join(err, failure)
}

// subscription receives a session's roots from its publisher.
type subscription struct {
	log  *slog.Logger
	conn net.Conn // nil if the publisher could not be reached
	in   *jsonrpc.Reader
	list atomic.Pointer[json.RawMessage] // nil without a publisher
}

// subscribe connects to the publisher and waits a bounded time for the first list.
func subscribe(ctx context.Context, o Options) *subscription {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	s := &subscription{log: o.Logger}
	if o.Address == "" {
		return s
	}
	conn, in, err := dial(ctx, o.Address, o.Secret, allLists)
	if err == nil {
		s.conn, s.in = conn, in
		err = s.receive()
		_ = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		s.log.Warn("cannot get the session's roots; messages pass unchanged", "socket", o.Address,
			"error", err)
	}
	return s
}

// receive waits for the next list.
func (s *subscription) receive() error {
	line, err := s.in.Append(nil)
	var list struct{ Roots []json.RawMessage }
	if err == nil && (json.Unmarshal(line, &list) != nil || list.Roots == nil) {
		err = errors.New("the publisher did not send a list of roots")
	}
	if err != nil {
		s.list.Store(nil)
		return err
	}
	s.list.Store(new(json.RawMessage(bytes.TrimSpace(line))))
	return nil
}

// follow receives further lists until the session ends, and calls changed after each.
func (s *subscription) follow(changed func()) {
	for s.current() != nil {
		if err := s.receive(); err == nil {
			changed()
		} else if !errors.Is(err, net.ErrClosed) { // by us
			s.log.Warn("the session has ended; messages pass unchanged", "error", err)
		}
	}
}

// current returns the newest list as a result of roots/list, nil without a publisher.
func (s *subscription) current() json.RawMessage {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (s *subscription) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
