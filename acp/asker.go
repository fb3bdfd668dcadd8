package acp

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// asker passes messages of a backend on to the client, for a session or one of its subagents. It
// implements [backend.Client]. The client must offer the method of a message. Then package access
// decides about it, and the asker carries that out.
type asker struct {
	host *host
	from backend.Sender // zero for the session itself
}

// Call implements [backend.Client].
func (a asker) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := a.admit(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	if method == protocol.RequestPermission || method == protocol.ElicitationCreate {
		_, wait := a.ask(ctx, question.New(method, params))
		return func() (backend.Raw, error) {
			got := wait()
			return got.Result, got.Err
		}
	}
	_, live := a.host.gate.Live()
	m := access.Message{From: a.from, Method: method, Params: params, CanAsk: live}
	var work backend.Work
	switch d := a.host.access.DecideMessage(ctx, m).(type) {
	case access.Pass:
		work = a.pass(ctx, m, d.Action)
	case access.Confirm:
		work = func() (backend.Raw, error) {
			if err := a.host.access.Confirm(ctx, m, d, a.askOnce); err != nil {
				return nil, err
			}
			if err := a.admit(method, params); err != nil { // that was a while ago
				return nil, err
			}
			return a.pass(ctx, m, d.Action)()
		}
	case access.ReadOutside:
		work = func() (backend.Raw, error) {
			return a.host.access.ReadOutside(ctx, m, d, a.askOnce)
		}
	case access.Refuse:
		if live && d.Effect == permission.Deny {
			a.observeRule(method, d.Verdict)
		}
		work = jsonrpc.Fail(d.Err)
	}
	return work
}

// Notify implements [backend.Client].
func (a asker) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := a.admit(method, params); err != nil {
		return err
	}
	m := access.Message{From: a.from, Method: method, Params: params}
	if d, refused := a.host.access.DecideMessage(ctx, m).(access.Refuse); refused {
		return d.Err
	}
	if a.host.access.Serves(method) {
		return access.ErrNotServed(method)
	}
	params = a.addressed(method, params)
	a.host.viewers.Send(ctx, nil, len(params), func(to *connection) error {
		return to.TryNotify(method, params)
	})
	return nil
}

// admit returns an error if the session is closed, or no client offers the method of a message.
func (a asker) admit(method string, params backend.Raw) error {
	if a.host.gate.Phase() == gate.Closed {
		return backend.ErrClosed
	}
	if a.from.Subagent != "" {
		params = a.addressed(method, params)
	}
	clients := a.host.viewers.Clients()
	if len(clients) == 0 {
		clients = []*connection{a.host.adapter.connection}
	}
	var err error
	for _, c := range clients {
		if err = c.checkMethod(method, params); err == nil {
			return nil
		}
	}
	return err
}

// pass returns the work for a request whose action is allowed: one for a file may be served here,
// and all others are sent at once.
func (a asker) pass(ctx context.Context, m access.Message, does permission.Action) backend.Work {
	params := a.addressed(m.Method, m.Params)
	if a.host.access.Serves(m.Method) {
		return func() (backend.Raw, error) {
			return a.host.access.Serve(ctx, m.Method, params, does)
		}
	}
	return a.host.viewers.Call(ctx,
		func(to *connection) error { return to.checkMethod(m.Method, params) },
		func(ctx context.Context, to *connection) backend.Work {
			return to.Call(ctx, m.Method, params)
		})
}

// askOnce is an [access.Asker], which also shows what is asked about as a tool call.
func (a asker) askOnce(ctx context.Context, q backend.Question) error {
	q.Once, q.Reject = "Allow once", "Reject"
	_, err := backend.AskShown(ctx, a.host, a.host, q)
	return err
}

// addressed returns the params of a message from the asker.
func (a asker) addressed(method string, params backend.Raw) backend.Raw {
	to := a.host.viewers.Address
	switch {
	case method == protocol.ElicitationComplete: // it names no session
		return params
	case a.from.Subagent == "":
		return to.On(params)
	case method == protocol.RequestPermission:
		params = protocol.MapToolCallReferences(params, "toolCall", to.External)
	}
	return to.Subagent(a.from.Subagent).On(params)
}

// sessionless implements [backend.Client] outside of sessions.
type sessionless struct{ adapter *adapter }

// Call implements [backend.Client].
func (c sessionless) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := c.check(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	return c.adapter.connection.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (c sessionless) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := c.check(method, params); err != nil {
		return err
	}
	return c.adapter.connection.Notify(ctx, method, params)
}

func (c sessionless) check(method string, params backend.Raw) error {
	for _, prefix := range []string{protocol.FilePrefix, protocol.TerminalPrefix,
		protocol.SessionPrefix} {
		if strings.HasPrefix(method, prefix) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s needs the id of an open session",
				method)
		}
	}
	if !c.adapter.grants.allowsBack(method) {
		return errNotGranted(RoleFull, method)
	}
	return c.adapter.connection.checkMethod(method, params)
}
