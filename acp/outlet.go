package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// outlet is where a session's messages go: the client that has the session open. If turns outlive
// their connection, an outlet may have no client for a while, and then a client on another
// connection. Without a client, messages are dropped and questions wait.
type outlet struct {
	// agent runs the session. If turns end with the connection, the outlet always leads to its
	// client.
	agent *agent

	mu     sync.Mutex
	holder *agent          // whose client may send requests about the session, or nil
	to     *agent          // whose client is sent its messages, or nil
	tenure context.Context // ends when to is another agent or nil
	end    context.CancelFunc
	back   chan struct{} // closed when to changes to an agent
}

// newOutlet returns the outlet of a session that a runs and the client of to opens.
func newOutlet(a, to *agent) *outlet {
	o := &outlet{agent: a, holder: to}
	if a.lasting() {
		o.back = make(chan struct{})
		o.attach(to)
	}
	return o
}

// attach sends the session's messages to a's client from now on, unless a's connection has ended or
// another client has claimed the session.
func (o *outlet) attach(a *agent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holder != a || a.left.Load() {
		return
	}
	o.to = a
	o.tenure, o.end = context.WithCancel(context.Background())
	close(o.back)
	o.back = make(chan struct{})
}

// claim makes a's client the only one that may send requests about the session. If another client
// was sent its messages, that ends, and claim returns a channel that is closed by the next attach.
func (o *outlet) claim(a *agent) (back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holder = a
	if o.to == a {
		return nil
	}
	return o.detachLocked()
}

// leave takes the session from a's client. If that was sent its messages, leave returns a channel
// that is closed by the next attach.
func (o *outlet) leave(a *agent) (back <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holder == a {
		o.holder = nil
	}
	if o.to != a {
		return nil
	}
	return o.detachLocked()
}

func (o *outlet) detachLocked() (back <-chan struct{}) {
	if o.to == nil {
		return nil
	}
	o.end()
	o.to = nil
	return o.back
}

// heldBy reports whether a's client may send requests about the session.
func (o *outlet) heldBy(a *agent) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holder == a
}

// shownOn returns the agent whose client is sent the messages, or nil.
func (o *outlet) shownOn() *agent {
	if !o.agent.lasting() {
		return o.agent
	}
	to, _, _ := o.current()
	return to
}

func (o *outlet) current() (to *agent, tenure context.Context, back <-chan struct{}) {
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

// notify sends the client a notification.
func (o *outlet) notify(ctx context.Context, method string, params backend.Raw) error {
	return o.reach(ctx, func(ctx context.Context, to *agent) error {
		return to.conn.Notify(ctx, method, params)
	})
}

// update sends the client an update of the session, if the client takes it.
func (o *outlet) update(
	ctx context.Context, session address, u backend.Update, when occasion,
) error {
	return o.reach(ctx, func(ctx context.Context, to *agent) error {
		if to != o.agent { // which the backend does not know
			when = forAnother
		}
		return to.sendUpdate(ctx, session, u, when)
	})
}

// reach calls send for the agent whose client is sent the messages, if there is one.
func (o *outlet) reach(
	ctx context.Context, send func(ctx context.Context, to *agent) error,
) error {
	if !o.agent.lasting() {
		return send(ctx, o.agent)
	}
	to, tenure, _ := o.current()
	if to == nil {
		return nil
	}
	ctx, cancel := during(ctx, tenure)
	defer cancel()
	err := send(ctx, to)
	if errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, errDetached) {
		return nil
	}
	return err
}

// call sends the client a request. A question to the user that no client has answered is asked
// again in the next one that has the session open.
func (o *outlet) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if !o.agent.lasting() {
		return backend.Work(o.agent.conn.Call(ctx, method, params))
	}
	question := method == protocol.RequestPermission || method == protocol.ElicitationCreate
	to, tenure, back := o.current()
	work := o.callDuring(ctx, to, tenure, method, params)
	return func() (backend.Raw, error) {
		for {
			result, err := work()
			if !question || !errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, errDetached) {
				return result, err
			}
			select {
			case <-back:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			to, tenure, back = o.current()
			work = o.callDuring(ctx, to, tenure, method, params)
		}
	}
}

// callDuring sends a request to the client of to, which may be nil, and waits for the response
// during a tenure only.
func (o *outlet) callDuring(
	ctx context.Context, to *agent, tenure context.Context, method string, params backend.Raw,
) backend.Work {
	err := errDetached
	if to != nil {
		err = to.checkMethod(method, params)
	}
	if err != nil {
		return func() (backend.Raw, error) { return nil, err }
	}
	ctx, cancel := during(ctx, tenure)
	if to != o.agent && method == protocol.RequestPermission {
		params = to.clientCapabilities().withoutContent(params, "toolCall")
	}
	work := to.conn.Call(ctx, method, params)
	return func() (backend.Raw, error) {
		defer cancel()
		return work()
	}
}
