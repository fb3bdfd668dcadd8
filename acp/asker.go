package acp

import (
	"context"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/access"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// Messages of a backend to the client. Each is checked: the client must offer its method, its paths
// must be in the roots, and the rules of the user decide about files and commands.

// asker sends the client messages of a session, or of one of its children. It implements
// [backend.Client].
type asker struct {
	questions *questions
	backend.Sender
}

// For implements [backend.Host].
func (q *questions) For(from backend.Sender) backend.Client { return asker{q, from} }

// Call implements [backend.Client].
func (q *questions) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return asker{questions: q}.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (q *questions) Notify(ctx context.Context, method string, params backend.Raw) error {
	return asker{questions: q}.Notify(ctx, method, params)
}

// Call implements [backend.Client].
func (a asker) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	q := a.questions
	live := q.gate.Phase() == gate.Live
	if err := a.check(ctx, method, params); err != nil {
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		if isOutside && live && method == protocol.ReadTextFile && a.Child == "" && !a.Decided {
			return func() (backend.Raw, error) {
				return q.access.ReadOutside(ctx, params, err, func(path, real string) error {
					return q.askToRead(ctx, path, real, err)
				})
			}
		}
		return jsonrpc.Fail(err)
	}
	action, err := q.access.Check(a.Sender, method, params)
	send := func() backend.Work {
		addressed := a.addressed(method, params)
		if q.servesFiles(method) {
			return func() (backend.Raw, error) {
				return q.access.Serve(ctx, method, addressed, action)
			}
		}
		return q.viewers.call(ctx, method, addressed)
	}
	switch {
	case err != nil:
		return a.ruled(ctx, method, params, err, send)
	case live && method == protocol.RequestPermission && !a.Decided:
		return a.requestPermission(ctx, params)
	}
	return send()
}

// Notify implements [backend.Client].
func (a asker) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := a.check(ctx, method, params); err != nil {
		return err
	}
	if _, err := a.questions.access.Check(a.Sender, method, params); err != nil {
		return err
	}
	if a.questions.servesFiles(method) {
		return access.ErrNotServed(method)
	}
	a.questions.viewers.notify(ctx, method, a.addressed(method, params))
	return nil
}

// servesFiles reports whether a message of the backend is about files that are served here.
func (q *questions) servesFiles(method string) bool {
	return q.agent.info().Restricted && strings.HasPrefix(method, protocol.FilePrefix)
}

// check returns an error if the backend may not send the client this message. Its paths must be in
// the session's roots, and in the child's.
func (a asker) check(ctx context.Context, method string, params backend.Raw) error {
	q, addressed := a.questions, params
	if q.gate.Phase() == gate.Closed {
		return backend.ErrClosed
	}
	if a.Child != "" {
		addressed = a.addressed(method, params)
	}
	if err := q.viewers.offers(method, addressed); err != nil {
		return err
	}
	if err := access.CheckPaths(q.access.Guarded, method, params); err != nil || a.Child == "" {
		return err
	}
	return a.inRoots(ctx, func(w *workspace.Workspace) error {
		return access.CheckPaths(w, method, params)
	})
}

// addressed returns the params of a message from the asker.
func (a asker) addressed(method string, params backend.Raw) backend.Raw {
	session := a.questions.address
	switch {
	case method == protocol.ElicitationComplete: // it names no session
		return params
	case a.Child == "":
		return putSessionMember(params, session.member)
	case method == protocol.RequestPermission:
		params = protocol.MapToolCallReferences(params, "toolCall",
			func(text string) string { return external(session.id, text) })
	}
	return putSessionMember(params, sessionMember(childID(session.id, a.Child)))
}

// reaches returns an error unless another program that opens a path now reaches a file or directory
// in the asker's roots.
func (a asker) reaches(ctx context.Context, path string) error {
	if err := a.questions.workspace.HandOver(path); err != nil || a.Child == "" {
		return err
	}
	return a.inRoots(ctx, func(w *workspace.Workspace) error { return w.HandOver(path) })
}

// inRoots calls do with the asker's roots.
func (a asker) inRoots(ctx context.Context, do func(w *workspace.Workspace) error) error {
	q := a.questions
	switch {
	case a.Child == "":
		return do(q.workspace)
	case a.Roots.IsZero() || a.Roots.Equal(q.workspace.Roots()):
		return do(q.access.Guarded)
	}
	known := q.workspace.Opened()
	roots := a.Roots.Granting(func(dir workspace.Dir) workspace.Grant {
		grant, _ := workspace.GrantOf(workspace.Real(dir), known)
		return grant
	})
	w, err := workspace.Open(ctx, roots, q.agent.options.Workspace)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the folders of the subagent: %v", err)
	}
	defer w.Close()
	return do(w)
}

// sessionless implements [backend.Client] outside of sessions.
type sessionless struct{ agent *agent }

// Call implements [backend.Client].
func (c sessionless) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if err := c.check(method, params); err != nil {
		return jsonrpc.Fail(err)
	}
	return c.agent.connection.Call(ctx, method, params)
}

// Notify implements [backend.Client].
func (c sessionless) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := c.check(method, params); err != nil {
		return err
	}
	return c.agent.connection.Notify(ctx, method, params)
}

func (c sessionless) check(method string, params backend.Raw) error {
	for _, prefix := range []string{protocol.FilePrefix, protocol.TerminalPrefix,
		protocol.SessionPrefix} {
		if strings.HasPrefix(method, prefix) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s needs the id of an open session",
				method)
		}
	}
	if !c.agent.grants.allowsBack(method) {
		return errNotGranted(RoleFull, method)
	}
	return c.agent.connection.checkMethod(method, params)
}
