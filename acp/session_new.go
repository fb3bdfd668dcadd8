package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptNew serves session/new. It waits for no other session.
func (a *agent) acceptNew(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		p, err := a.decodeSession(ctx, parseParams(r.Params, newShape), newFields)
		if err != nil {
			return nil, err
		}
		if err := a.addFolders(ctx, &p, backend.New, nil); err != nil {
			return nil, err
		}
		return a.create(ctx, r, p, backend.New, openable{})
	}
}

// create opens a session, stores it and returns the response. source is the session that it is a
// fork of, the zero value for a new one.
func (a *agent) create(
	ctx context.Context, r *jsonrpc.Request, p sessionParams, cause backend.Cause, source openable,
) (json.RawMessage, error) {
	id := sessionstore.NewID()
	o := opening{id: id, stored: id, params: p, foreign: source.foreign,
		activation: backend.Activation{Cause: cause, State: source.State,
			MustExist: a.unrecorded(ctx, source)}}
	if cause == backend.Fork && !source.foreign {
		o.activation.History = a.options.Store.Finished(ctx, source.ID)
	}
	act, err := a.open(ctx, o)
	if err != nil {
		return nil, protocolError(err)
	}
	lease, err := act.store(func() (sessionstore.Lease, error) {
		return a.storeNew(ctx, act, cause, source)
	})
	if err != nil {
		return nil, protocolError(err)
	}
	at := a.queues.ticket(act.id, lifecycleRequest)
	s, err := act.activate(at.queue, lease, source.Title)
	if err != nil {
		at.release()
		return nil, err
	}
	s.notice = act.droppedFolders(p, cause, source.Keys) + act.broadRoots(workspace.Roots{})
	a.releaseAfterResponse(r, at, s, act.movedRoots(source.Keys))
	return strictjson.Set(act.opened.Result, protocol.SessionID, quote(string(act.id))), nil
}

// storeNew stores a session that was opened, with the finished turns of source if it is a fork.
func (a *agent) storeNew(
	ctx context.Context, act *activation, cause backend.Cause, source openable,
) (sessionstore.Lease, error) {
	state := act.host.takeState()
	n := sessionstore.NewSession{
		ID: act.id, Agent: a.init.owner(), Keys: act.keys(act.params.roots.Cwd()), State: state,
		StateKey: a.stateKey(state), Title: source.Title,
	}
	switch {
	case cause == backend.New:
		return a.options.Store.Create(ctx, n)
	case source.foreign:
		return a.adopt(ctx, sessionstore.Session{ID: n.ID, Agent: n.Agent, Title: n.Title},
			sessionstore.Activation{Keys: n.Keys, State: n.State, StateKey: n.StateKey})
	case n.State == nil:
		n.State = source.State
	}
	return a.options.Store.Fork(ctx, source.ID, n)
}

// releaseAfterResponse lets the session go ahead once the response to r is on the wire: the notice
// is shown but not recorded, the updates buffered so far are sent, then the queue moves on.
func (a *agent) releaseAfterResponse(r *jsonrpc.Request, at *ticket, s *session, notice string) {
	r.AfterResponse(func() {
		if notice != "" {
			if err := s.show(a.base, backend.Text(notice)); err != nil {
				a.log.Debug("notice not sent", "session", s.id, "error", err)
			}
		}
		s.host.release(a.base)
		at.release()
	})
}

// opening says which session is to be opened, and with what.
type opening struct {
	id         sessionstore.ID // for the client
	stored     sessionstore.ID // see host
	params     sessionParams
	activation backend.Activation // without Params
	foreign    bool               // the store does not have it, or its source
	previous   *session           // the active session that a load or resume replaces, or nil
	rate       *replayRate        // of a load
}

// activation is an opened session that is not active yet. Either activate makes it a session, or
// abandon undoes it.
type activation struct {
	agent     *agent
	id        sessionstore.ID
	counted   bool // against the limit of active sessions
	params    sessionParams
	workspace *workspace.Workspace
	broad     []string // by root, from broadDir
	servers   serverChange
	host      *host
	backend   backend.Session
	opened    backend.Opened
}

// open opens a session: its roots, its MCP servers, the catalog of what its roots hold, and the
// backend's side of it. If it fails, nothing remains of that.
func (a *agent) open(ctx context.Context, o opening) (*activation, error) {
	act := &activation{agent: a, id: o.id}
	if o.previous == nil {
		if err := act.count(); err != nil {
			return nil, err
		}
	}
	if err := a.onDiskOrUndo(ctx, func() error {
		return act.openRoots(ctx, o)
	}, act.abandon); err != nil {
		return nil, err
	}
	ok := false
	defer func() {
		if !ok { // also after a panic
			act.abandon()
		}
	}()
	params := o.activation
	params.Params, params.History = o.params.rest, act.host.history(params.History)
	var err error
	act.backend, act.opened, err = a.backend.Open(ctx, params, act.host)
	if errors.Is(err, backend.ErrUnknownSession) {
		if _, told := errors.AsType[*backend.Error](err); told && !o.foreign {
			return nil, err // it is listed, so it matters why it cannot be opened
		}
		return nil, errUnknownSession(o.params.id)
	}
	if err != nil {
		return nil, err
	}
	if a.queues.isClosed() {
		return nil, backend.ErrClosed // the connection has ended: store nothing
	}
	if act.opened.Result, err = lifecycleResult(act.opened.Result); err != nil {
		return nil, err
	}
	ok = true
	return act, nil
}

// count counts the session against the limit.
func (act *activation) count() error {
	limit := act.agent.options.tuning.MaxSessions
	if act.agent.active.Add(1) > int64(limit) {
		act.agent.active.Add(-1)
		return stateError(jsonrpc.CodeInternal,
			fmt.Sprintf("too many active sessions: the limit is %d; close one first", limit),
			reasonData{Reason: "too_many_sessions"})
	}
	act.counted = true
	return nil
}

// openRoots opens what is on disks: the roots, and what is in them.
func (act *activation) openRoots(ctx context.Context, o opening) (err error) {
	a := act.agent
	act.workspace, err = workspace.Open(ctx, o.params.roots, a.options.Workspace)
	if wrong := o.params.rootViolations(err); wrong != nil {
		return strictjson.Refuse(wrong...)
	}
	if err != nil {
		return err
	}
	for _, root := range act.workspace.Opened() {
		act.broad = append(act.broad, broadDir(root.Real, a.home()))
	}
	act.params = o.params
	act.host = newHost(a, act.id, o.stored, act.workspace)
	act.host.stop, act.host.rate, act.host.foreign = o.activation.Stop, o.rate, o.foreign
	if err := o.params.checkShown(act.workspace); err != nil {
		return err
	}
	if act.servers,
		err = a.changeServers(act.id, act.workspace, o.previous, o.params.servers); err != nil {
		return err
	}
	act.host.servers = &sessionServers{set: act.servers.set,
		ours: a.init.mcpOwner() == backend.AdapterConnects, given: act.servers.configs}
	return act.host.scan(ctx)
}

// store stores the activation with do, and abandons it if that fails or panics.
func (act *activation) store(
	do func() (sessionstore.Lease, error),
) (lease sessionstore.Lease, err error) {
	err = act.agent.guard("session store", func() (err error) {
		lease, err = do()
		return err
	})
	if err != nil {
		act.abandon()
	}
	return lease, err
}

// abandon undoes as much of the activation as there is.
func (act *activation) abandon() {
	a := act.agent
	if act.counted {
		a.active.Add(-1)
	}
	if act.workspace == nil {
		return
	}
	act.host.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.base), commitTimeout)
	defer cancel()
	var err error
	if act.backend != nil {
		err = a.guard("close", func() error { return act.backend.Close(ctx) })
	}
	err = errors.Join(err, act.servers.abandon(ctx), act.host.dropReplayed(ctx),
		act.workspace.Close())
	if err != nil {
		a.log.Warn("cannot close a session that failed to open", "session", act.id, "error", err)
	}
}

// activate makes the activation, which was stored under lease, the active session of q. It fails if
// the connection has ended: what was stored stays, and what was opened is closed.
func (act *activation) activate(
	q *queue, lease sessionstore.Lease, title string,
) (*session, error) {
	act.servers.apply(act.host, act.backend)
	s := newSession(act, q, lease, title)
	if !act.agent.queues.activate(s) {
		s.retire(act.agent.base)
		if act.counted {
			act.agent.active.Add(-1)
		}
		return nil, backend.ErrClosed
	}
	act.host.attach(s)
	act.host.announceCommands()
	return s, nil
}

// keys returns the activation's root set in both keys, with cwd in the spelling that the session
// keeps. An additional root in the same spelling is dropped, as session/new would drop it.
func (act *activation) keys(cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, act.workspace.Roots().Additional())}
	for _, root := range act.workspace.Opened() {
		if root.Index == 0 || root.Dir != cwd {
			k.Real = append(k.Real, root.Real)
		}
	}
	return k
}

// lifecycleResult checks a backend's part of a lifecycle response and removes its session id.
func lifecycleResult(result backend.Raw) (json.RawMessage, error) {
	if len(result) == 0 {
		return json.RawMessage(`{}`), nil
	}
	_, rest, err := strictjson.Take(result, protocol.SessionID)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent's response is not an object")
	}
	return rest, nil
}

// sessionParams are the params of new, load, resume and fork, checked as far as possible without
// the store and the file system.
type sessionParams struct {
	id      sessionstore.ID // of load, resume and fork
	roots   workspace.Roots
	listed  bool     // the client sent additionalDirectories
	folders []Folder // the additional roots if it did not
	servers []mcpclient.Config
	rest    backend.Raw // the params without sessionId, with the additional roots
}

// sessionFields says which members a lifecycle method has.
type sessionFields struct{ id, servers presence }

// presence says whether a member must be present.
type presence int

const (
	absent presence = iota // the method does not have the member
	optional
	required
)

var (
	newFields    = sessionFields{servers: required}
	loadFields   = sessionFields{id: required, servers: required}
	resumeFields = sessionFields{id: required, servers: optional}
	forkFields   = sessionFields{id: required, servers: optional}
)

// decodeSession reads the params of a lifecycle method, and reports everything that is wrong with
// them. It waits for a running initialize, which decides which MCP transports are advertised.
func (a *agent) decodeSession(
	ctx context.Context, params params, f sessionFields,
) (sessionParams, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionParams{}, err
	}
	if params.err != nil {
		return sessionParams{}, params.err
	}
	var v strictjson.Violations
	p := sessionParams{rest: params.Without(protocol.SessionID),
		listed: params.Field(protocol.AdditionalDirectories).Present()}
	if f.id == required {
		p.id = sessionstore.ID(v.Text(params.Field(protocol.SessionID)))
	}
	p.roots = decodeRoots(&v, params.Object)
	p.servers = decodeServers(&v, params.Field("mcpServers"), f.servers, a.init.transports())
	return p, v.Err()
}

// decodeRoots reads cwd and additionalDirectories.
func decodeRoots(v *strictjson.Violations, params strictjson.Object) workspace.Roots {
	path, wrong := params.Field("cwd").Text()
	v.Add(wrong...)
	if wrong == nil {
		_, err := workspace.ParseDir(path)
		v.Add(rootViolations(err)...)
	}
	additional := decodeDirectories(v, params.Field(protocol.AdditionalDirectories))
	if !v.Empty() {
		return workspace.Roots{}
	}
	roots, err := workspace.NewRoots(path, additional)
	v.Add(rootViolations(err)...)
	return roots
}

// decodeDirectories reads additionalDirectories, which may be absent. Every entry is checked.
func decodeDirectories(v *strictjson.Violations, f strictjson.Field) []string {
	if !f.Present() {
		return nil
	}
	var paths []string
	for i, item := range v.Items(f) {
		if v.Full() {
			break
		}
		path, wrong := item.Text()
		if wrong == nil {
			_, err := workspace.ParseDirs([]string{path})
			for _, w := range rootViolations(err) {
				wrong = append(wrong, w.At(i))
			}
		}
		v.Add(wrong...)
		paths = append(paths, path)
	}
	return paths
}

// rootViolations returns the violations in an error of package workspace about a root set.
func rootViolations(err error) []strictjson.Violation {
	var roots workspace.RootErrors
	if !errors.As(err, &roots) {
		return nil
	}
	wrong := make([]strictjson.Violation, len(roots))
	for i, e := range roots {
		reason := strictjson.Reason(e.Reason) // workspace's reasons are among the protocol's
		switch {
		case e.Root < 0:
			wrong[i] = strictjson.NewViolation(protocol.AdditionalDirectories, nil, reason)
		case e.Root == 0:
			wrong[i] = strictjson.NewViolation("cwd", e.Path, reason)
		default:
			wrong[i] = strictjson.NewViolation(protocol.AdditionalDirectories, e.Path,
				reason).At(e.Root - 1)
		}
		wrong[i].Expected = e.Detail
	}
	return wrong
}
