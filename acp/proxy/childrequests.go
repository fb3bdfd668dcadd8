package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// request sends a request.
func (c *child) request(ctx context.Context, method string, params backend.Raw) backend.Work {
	return c.requestFunc(ctx, method, params, nil)
}

// requestFunc sends a request and returns its result unchanged, or its error explained. onResponse
// may be nil; see [jsonrpc.Conn.CallFunc].
func (c *child) requestFunc(
	ctx context.Context, method string, params backend.Raw, onResponse func(backend.Raw, error),
) backend.Work {
	work := c.rpc.CallFunc(ctx, method, params, onResponse)
	return func() (backend.Raw, error) {
		result, err := work()
		return result, c.explain(ctx, params, err)
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
	_, ended := errors.AsType[*endedError](err)
	rejection := responseError(err)
	switch {
	case ended, rejection != nil && rejection.Code == protocol.CodeNotFound:
		return nil, nil
	case errors.Is(err, errNoAnswer):
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
	err := c.rpc.TryNotify(method, params)
	if errors.Is(err, jsonrpc.ErrQueueFull) {
		if c.unread += len(method) + len(params); c.unread > c.limits.MaxHeldBytes {
			c.stop(errNotReading)
			return
		}
		err = c.rpc.ForceNotify(method, params)
	} else {
		c.unread = 0
	}
	if err != nil {
		c.log.Warn("cannot send the agent a notification", "method", method, "error", err)
	}
}

// cancel sends session/cancel, even if the output to the child is full.
func (c *child) cancel(params backend.Raw) {
	if err := c.rpc.ForceNotify(protocol.SessionCancel, params); err != nil {
		c.log.Debug("cannot send the agent session/cancel", "error", err)
	}
}
