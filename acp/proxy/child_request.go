package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// introduce initializes the child, and logs it in if the other children are logged in.
func (c *child) introduce(ctx context.Context) error {
	p := c.proxy
	p.mu.Lock()
	initialize, login := p.initialize, p.login
	p.mu.Unlock()
	if err := c.initialize(ctx, initialize); err != nil {
		return err
	}
	p.setAgentInfo(c.info)
	if login == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.StartTimeout)
	defer cancel()
	if _, err := c.request(ctx, protocol.Authenticate, login)(); err != nil {
		c.log.Warn("cannot log the restarted agent in", "error", err)
	}
	return nil
}

// initialize sends initialize and sets info.
func (c *child) initialize(ctx context.Context, params backend.Raw) error {
	timeout := c.limits.StartTimeout
	slow := fmt.Errorf("%s did not answer initialize within %v: "+
		"see acp-agent's log at level info, under child=%[1]s", c.process.Name(), timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, slow)
	defer cancel()
	notice := time.AfterFunc(c.limits.StartNotice, func() {
		c.log.Warn("the agent has not answered initialize yet; "+
			"it may be installing itself, as npx and uvx do the first time", "limit", timeout)
	})
	defer notice.Stop()
	result, err := c.request(ctx, protocol.Initialize, params)()
	if refused := responseError(err); refused != nil && refused.Code == jsonrpc.CodeMethodNotFound {
		return fmt.Errorf("%s does not speak ACP: it does not know the method initialize; "+
			"check its command, many agents need an argument such as acp", c.process.Name())
	}
	if err != nil {
		return err
	}
	if c.info, err = client.ParseAgent(result); err != nil {
		return err
	}
	if c.info.Version != client.ProtocolVersion {
		return fmt.Errorf("%s speaks version %d of ACP and acp-agent speaks version %d: "+
			"install a version of it that speaks %[3]d",
			c.info.Name, c.info.Version, client.ProtocolVersion)
	}
	return nil
}

// request sends a request of our own.
func (c *child) request(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.requestFunc(ctx, method, params, nil)
}

// forward sends a request of the client that names no session. Messages that the child sends after
// its response reach the client after our response.
func (c *child) forward(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.requestFunc(ctx, method, params, func(backend.Raw, error) {
		c.router.barrier.add(jsonrpc.Answered(ctx))
	})
}

// requestFunc sends a request and returns its result unchanged, or its error explained. onResponse
// may be nil; see [jsonrpc.Conn.CallFunc].
func (c *child) requestFunc(
	ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error),
) backend.Work {
	work := c.conn.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		if !errors.Is(err, jsonrpc.ErrClosed) {
			return result, c.explain(params, err)
		}
		select {
		case <-c.done:
			return nil, c.explain(params, c.exit)
		case <-ctx.Done():
			return nil, err
		}
	}
}

// closeSession closes a session of the child, if the child supports that.
func (c *child) closeSession(ctx context.Context, id, params backend.Raw) (backend.Raw, error) {
	if !c.info.Close || !c.running() {
		return nil, nil
	}
	return c.requestStored(ctx, protocol.SessionClose, id, params)
}

// discard closes and deletes a session that is not needed. It does not wait for the answers.
func (c *child) discard(id backend.Raw) {
	c.log.Info("closing a session that the agent created too late")
	params := withSessionID(backend.Raw(`{}`), id)
	for _, method := range []string{protocol.SessionClose, protocol.SessionDelete} {
		if c.info.Serves(method) {
			_ = c.request(context.Background(), method, params)
		}
	}
}

// requestStored sends a request about a session that may not be open. It returns no error if the
// session does not exist, or if the child has ended or does not answer in time.
func (c *child) requestStored(
	ctx context.Context, method string, id, params backend.Raw,
) (backend.Raw, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	result, err := c.request(ctx, method, withSessionID(params, id))()
	if _, ended := errors.AsType[*endedError](err); ended {
		return nil, nil
	}
	if e := responseError(err); e != nil && e.Code == protocol.CodeNotFound {
		return nil, nil
	}
	if errors.Is(err, errNoAnswer) {
		c.log.Warn("the agent did not answer in time", "method", method,
			"limit", c.limits.EndTimeout)
		return nil, nil
	}
	return result, err
}

// notify sends a notification without blocking, in the order of the calls. No notification is
// dropped silently: a child that leaves too many unread is killed.
func (c *child) notify(method string, params backend.Raw) {
	c.notifying.Lock()
	defer c.notifying.Unlock()
	err := c.conn.TryNotify(method, params)
	if errors.Is(err, jsonrpc.ErrQueueFull) {
		if c.unread += len(method) + len(params); c.unread > c.limits.MaxHeldBytes {
			c.stop(errNotReading)
			return
		}
		err = c.conn.ForceNotify(method, params)
	} else {
		c.unread = 0
	}
	if err != nil {
		c.log.Warn("cannot send the agent a notification", "method", method, "error", err)
	}
}

// cancel sends session/cancel, even if the output to the child is full.
func (c *child) cancel(params backend.Raw) {
	if err := c.conn.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.log.Debug("cannot send the agent session/cancel", "error", err)
	}
}
