package turns

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// Client is a client that may be shown a session.
type Client interface {
	comparable
	// HasLeft reports whether the client's connection has ended.
	HasLeft() bool
}

// Outlet is where a session's messages go: the client that has the session open. If turns outlive
// their connection, an outlet may have no client for a while, and then a client on another
// connection. Without a client, messages are dropped and questions wait.
type Outlet[C Client] struct {
	fixed C // the client if turns end with their connection, otherwise zero

	mu     sync.Mutex
	holder C               // who may send requests about the session, or zero
	to     C               // who is sent its messages, or zero
	tenure context.Context // ends when to is another client or zero
	end    context.CancelFunc
	back   chan struct{} // closed when to changes to a client
}

// FixedOutlet returns an outlet that always leads to c.
func FixedOutlet[C Client](c C) *Outlet[C] { return &Outlet[C]{fixed: c} }

// NewOutlet returns an outlet that leads to c, which opens the session, until another client claims
// the session.
func NewOutlet[C Client](c C) *Outlet[C] {
	o := &Outlet[C]{holder: c, back: make(chan struct{})}
	o.Attach(c)
	return o
}

// Attach sends the session's messages to c from now on, unless c's connection has ended or another
// client has claimed the session.
func (o *Outlet[C]) Attach(c C) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holder != c || c.HasLeft() {
		return
	}
	o.to = c
	o.tenure, o.end = context.WithCancel(context.Background())
	close(o.back)
	o.back = make(chan struct{})
}

// Claim makes c the only client that may send requests about the session. If another client was
// sent its messages, that ends, and Claim returns a channel that the next Attach closes.
func (o *Outlet[C]) Claim(c C) (back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holder = c
	if o.to == c {
		return nil
	}
	return o.detachLocked()
}

// Leave takes the session from c. If c was sent its messages, Leave returns a channel that the next
// Attach closes.
func (o *Outlet[C]) Leave(c C) (back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holder == c {
		o.holder = *new(C)
	}
	if o.to != c {
		return nil
	}
	return o.detachLocked()
}

func (o *Outlet[C]) detachLocked() (back <-chan struct{}) {
	if o.to == *new(C) {
		return nil
	}
	o.end()
	o.to = *new(C)
	return o.back
}

// HeldBy reports whether c may send requests about the session.
func (o *Outlet[C]) HeldBy(c C) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holder == c
}

// Client returns the client that is sent the messages, or zero.
func (o *Outlet[C]) Client() C {
	c, _ := o.Current()
	return c
}

// Current returns the client that is sent the messages, or zero, and a channel that the next Attach
// closes.
func (o *Outlet[C]) Current() (c C, back <-chan struct{}) {
	if o.isFixed() {
		return o.fixed, nil
	}
	c, _, back = o.current()
	return c, back
}

func (o *Outlet[C]) isFixed() bool { return o.fixed != *new(C) }

func (o *Outlet[C]) current() (c C, tenure context.Context, back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to, o.tenure, o.back
}

// errDetached ends a wait for a client that no longer has the session.
var errDetached = errors.New("the session is no longer open in this client")

// during returns a context that also ends with a tenure. The caller calls cancel.
func during(
	ctx, tenure context.Context,
) (limited context.Context, cancel func()) {
	limited, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(tenure, func() { end(errDetached) })
	return limited, func() {
		stop()
		end(nil)
	}
}

// Reach calls send for the client that is sent the messages, if there is one.
func (o *Outlet[C]) Reach(ctx context.Context, send func(ctx context.Context, to C) error) error {
	if o.isFixed() {
		return send(ctx, o.fixed)
	}
	to, tenure, _ := o.current()
	if to == *new(C) {
		return nil
	}
	ctx, cancel := during(ctx, tenure)
	defer cancel()
	err := send(ctx, to)
	if isLost(err) {
		return nil
	}
	return err
}

// isLost reports whether a client did not answer because it is gone.
func isLost(err error) bool {
	return errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, errDetached)
}

// Caller sends a client a request.
type Caller[C Client] func(ctx context.Context, to C) backend.Work

// Call sends the client a request with send. It fails if there is no client, or if that loses the
// session before it answers.
func (o *Outlet[C]) Call(ctx context.Context, send Caller[C]) backend.Work {
	if o.isFixed() {
		return send(ctx, o.fixed)
	}
	to, tenure, _ := o.current()
	return callDuring(ctx, to, tenure, send)
}

// Ask is Call for a question to the user: if no client has answered it, it is asked again in the
// next one that has the session open.
func (o *Outlet[C]) Ask(ctx context.Context, send Caller[C]) backend.Work {
	if o.isFixed() {
		return send(ctx, o.fixed)
	}
	to, tenure, back := o.current()
	work := callDuring(ctx, to, tenure, send)
	return func() (backend.Raw, error) {
		for {
			result, err := work()
			if !isLost(err) {
				return result, err
			}
			select {
			case <-back:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			to, tenure, back = o.current()
			work = callDuring(ctx, to, tenure, send)
		}
	}
}

// callDuring sends a request to a client and waits for the response during a tenure only. It fails
// if the client is zero.
func callDuring[C Client](
	ctx context.Context, to C, tenure context.Context, send Caller[C],
) backend.Work {
	if to == *new(C) {
		return func() (backend.Raw, error) { return nil, errDetached }
	}
	ctx, cancel := during(ctx, tenure)
	work := send(ctx, to)
	return func() (backend.Raw, error) {
		defer cancel()
		return work()
	}
}
