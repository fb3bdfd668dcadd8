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
	host *host
	backend.Sender
}

// Call implements [backend.Client].
func (a asker) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	h := a.host
	s, live := h.gate.Live()
	if err := a.check(ctx, method, params); err != nil {
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		if isOutside && live && method == protocol.ReadTextFile && a.Child == "" && !a.Decided {
			return func() (backend.Raw, error) {
				return h.access.ReadOutside(ctx, params, err, func(path, real string) error {
					return a.askToRead(ctx, path, real, err)
				})
			}
		}
		return jsonrpc.Fail(err)
	}
	action, err := h.access.Check(a.Sender, method, params)
	send := func() backend.Work {
		addressed := a.addressed(method, params)
		if a.servesFiles(method) {
			return func() (backend.Raw, error) {
				return h.access.Serve(ctx, method, addressed, action)
			}
		}
		return h.viewers.call(ctx, method, addressed)
	}
	switch {
	case err != nil:
		return a.ruled(ctx, method, params, err, send)
	case live && method == protocol.RequestPermission && !a.Decided:
		return a.requestPermission(ctx, s, params)
	}
	return send()
}

// Notify implements [backend.Client].
func (a asker) Notify(ctx context.Context, method string, params backend.Raw) error {
	if err := a.check(ctx, method, params); err != nil {
		return err
	}
	if _, err := a.host.access.Check(a.Sender, method, params); err != nil {
		return err
	}
	if a.servesFiles(method) {
		return access.ErrNotServed(method)
	}
	a.host.viewers.notify(ctx, method, a.addressed(method, params))
	return nil
}

// servesFiles reports whether a message of the backend is about files that are served here.
func (a asker) servesFiles(method string) bool {
	return a.host.agent.info().Restricted && strings.HasPrefix(method, protocol.FilePrefix)
}

// check returns an error if the backend may not send the client this message. Its paths must be in
// the session's roots, and in the child's.
func (a asker) check(ctx context.Context, method string, params backend.Raw) error {
	h, addressed := a.host, params
	if h.gate.Phase() == gate.Closed {
		return backend.ErrClosed
	}
	if a.Child != "" {
		addressed = a.addressed(method, params)
	}
	if err := h.viewers.offers(method, addressed); err != nil {
		return err
	}
	if err := access.CheckPaths(h.access.Guarded, method, params); err != nil || a.Child == "" {
		return err
	}
	return a.inRoots(ctx, func(w *workspace.Workspace) error {
		return access.CheckPaths(w, method, params)
	})
}

// addressed returns the params of a message from the asker.
func (a asker) addressed(method string, params backend.Raw) backend.Raw {
	session := a.host.viewers.address
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
	if err := a.host.workspace.HandOver(path); err != nil || a.Child == "" {
		return err
	}
	return a.inRoots(ctx, func(w *workspace.Workspace) error { return w.HandOver(path) })
}

// inRoots calls do with the asker's roots.
func (a asker) inRoots(ctx context.Context, do func(w *workspace.Workspace) error) error {
	h := a.host
	switch {
	case a.Child == "":
		return do(h.workspace)
	case a.Roots.IsZero() || a.Roots.Equal(h.workspace.Roots()):
		return do(h.access.Guarded)
	}
	known := h.workspace.Opened()
	roots := a.Roots.Granting(func(dir workspace.Dir) workspace.Grant {
		grant, _ := workspace.GrantOf(workspace.Real(dir), known)
		return grant
	})
	w, err := workspace.Open(ctx, roots, h.agent.options.Workspace)
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
