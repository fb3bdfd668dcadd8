package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptNew is the first half of session/new. The new session's lane is its own, so it waits for no other.
func (a *agent) acceptNew(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		p, err := a.decodeSession(ctx, r.Params, newFields)
		if err != nil {
			return nil, err
		}
		return a.create(ctx, r, p, backend.Activation{Cause: backend.New}, "", func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			return a.options.Store.Create(ctx, n)
		})
	}
}

// storing stores a session that was opened, and returns the right to write to it.
type storing func(context.Context, sessionstore.NewSession) (sessionstore.Lease, error)

// create opens a session of a new id and stores it.
func (a *agent) create(ctx context.Context, r *jsonrpc.Request, p sessionParams, ra backend.Activation, title string, store storing) (result json.RawMessage, err error) {
	err = a.counted(func() (err error) {
		result, err = a.createCounted(ctx, r, p, ra, title, store)
		return err
	})
	return result, asWire(err)
}

// createCounted is create for a session that was counted against the limit.
func (a *agent) createCounted(ctx context.Context, r *jsonrpc.Request, p sessionParams, ra backend.Activation, title string, store storing) (json.RawMessage, error) {
	act, err := a.open(ctx, newID(), p, nil, ra, nil)
	if err != nil {
		return nil, err
	}
	act.title = title
	state := act.host.takeState()
	l, err := store(ctx, sessionstore.NewSession{
		ID: act.id, Agent: a.init.owner(), Keys: act.keys(p.roots.Cwd()), State: state, StateKey: a.keyOf(state), Title: title,
	})
	if err != nil {
		act.abandon()
		return nil, err
	}
	act.servers.commit(act.host)
	at := a.lanes.enter(act.id, entryLifecycle)
	s, err := act.commit(at.lane, l)
	if err != nil {
		at.leave()
		return nil, err
	}
	a.settle(r, at, s)
	return put(act.opened.Result, "sessionId", quote(string(act.id))), nil
}

// settle has the rest of an activation done once its response is on the wire: what the runtime
// said meanwhile is sent, then the lane goes on.
func (a *agent) settle(r *jsonrpc.Request, at *place, s *session) {
	r.AfterResponse(func() {
		s.host.release(a.base)
		at.leave()
	})
}

// activation is a session on its way to being active: everything that can fail happens on it,
// and is undone by abandon. commit makes it a session.
type activation struct {
	agent     *agent
	id        sessionstore.ID
	workspace *workspace.Workspace
	servers   bridge
	host      *host
	runtime   backend.Session
	opened    backend.Opened
	title     string
}

// reserve counts a session against the limit.
func (a *agent) reserve() error {
	if n := a.active.Add(1); n > int64(a.options.tuning.MaxSessions) {
		a.active.Add(-1)
		return reasoned(jsonrpc.CodeInternal,
			"too many active sessions: the limit is "+strconv.Itoa(a.options.tuning.MaxSessions)+"; close one first",
			reasonData{Reason: "too_many_sessions"})
	}
	return nil
}

// counted runs open, which makes a session active, and counts the session against the limit unless open fails.
func (a *agent) counted(open func() error) error {
	if err := a.reserve(); err != nil {
		return err
	}
	active := false
	defer func() {
		if !active { // also after a panic
			a.active.Add(-1)
		}
	}()
	err := open()
	active = err == nil
	return err
}

// prepare opens the roots of an activation, and looks at what is in them.
func (a *agent) prepare(ctx context.Context, id sessionstore.ID, p sessionParams, before *session) (*activation, error) {
	w, err := workspace.Open(ctx, p.roots, a.options.Workspace)
	if wrong := rootViolations(err); wrong != nil {
		return nil, strictjson.Refuse(wrong...)
	}
	if err != nil {
		return nil, err
	}
	act := &activation{agent: a, id: id, workspace: w, host: newHost(a, id, w)}
	prepared := false
	defer func() {
		if !prepared { // also after a panic
			act.abandon()
		}
	}()
	if act.servers, err = a.bridgeTo(id, w, before, p.servers); err != nil {
		return nil, err
	}
	act.host.servers = &serving{set: act.servers.set, given: act.servers.configs}
	if err = act.host.scan(ctx); err != nil {
		return nil, err
	}
	prepared = true
	return act, nil
}

// open opens the roots and the runtime's side of an activation. What the runtime replays, if it may, keeps the pace.
func (a *agent) open(ctx context.Context, id sessionstore.ID, p sessionParams, before *session, r backend.Activation, replays *pace) (*activation, error) {
	act, err := onDisk(ctx, a, func() (*activation, error) { return a.prepare(ctx, id, p, before) }, (*activation).abandon)
	if err != nil {
		return nil, err
	}
	act.host.stop, act.host.pace = r.Stop, replays
	r.History = act.host.history(r.History)
	opened := false
	defer func() {
		if !opened { // also after a panic
			act.abandon()
		}
	}()
	r.Params = p.rest
	opening, with, err := a.runtime.Open(ctx, r, act.host)
	if err != nil {
		return nil, err
	}
	act.runtime, act.opened = opening, with
	if a.lanes.over() {
		return nil, backend.ErrClosed // nothing is committed for a connection that has ended
	}
	if act.opened.Result, err = lifecycleResult(act.opened.Result); err != nil {
		return nil, err
	}
	opened = true
	return act, nil
}

// abandon undoes an activation that was not committed.
func (act *activation) abandon() {
	act.host.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(act.agent.base), commitTimeout)
	defer cancel()
	var err error
	if act.runtime != nil {
		err = act.agent.guard("close", func() error { return act.runtime.Close(ctx) })
	}
	err = errors.Join(err, act.servers.abandon(ctx))
	if err = errors.Join(err, act.host.dropReplayed(ctx), act.workspace.Close()); err != nil {
		act.agent.log.Warn("undoing an activation", "session", act.id, "error", err)
	}
}

// keys are the activation's root set by both keys, with cwd in the spelling that the session keeps: an
// additional root that is spelled so is dropped, as it would have been at session/new (A7, A17).
func (act *activation) keys(cwd workspace.Dir) sessionstore.Keys {
	k := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, act.workspace.Roots().Additional())}
	for _, root := range act.workspace.Opened() {
		if root.Index == 0 || root.Dir != cwd {
			k.Real = append(k.Real, root.Real)
		}
	}
	return k
}

// commit makes the activation the active session of its lane. It was stored under l. Once the connection has
// ended it is too late: what was stored stays, and what was opened is freed.
func (act *activation) commit(in *lane, l sessionstore.Lease) (*session, error) {
	s := newSession(act, in, l)
	if !act.agent.lanes.activate(s) {
		s.retire(act.agent.base)
		return nil, backend.ErrClosed
	}
	act.host.commit(s)
	return s, nil
}

// newID is a new session id: unguessable and unique.
func newID() sessionstore.ID { return sessionstore.ID("sess_" + rand.Text()) }

// sessionParams are the params of new, load, resume and fork, checked as far as that goes without
// the store and the file system (stage 1 of A5).
type sessionParams struct {
	id      sessionstore.ID // of load, resume and fork
	roots   workspace.Roots
	servers []mcpclient.Config
	rest    backend.Raw // without sessionId
}

// sessionFields says what a lifecycle method's params hold.
type sessionFields struct {
	shape   *strictjson.Shape
	id      presence // sessionId
	servers presence // mcpServers
}

// presence says whether a member has to be there.
type presence int

var (
	newFields    = sessionFields{shape: newShape, servers: required}
	loadFields   = sessionFields{shape: loadShape, id: required, servers: required}
	resumeFields = sessionFields{shape: loadShape, id: required, servers: optional}
	forkFields   = sessionFields{shape: loadShape, id: required, servers: optional}
)

// decodeSession reads the params of a lifecycle method, and reports everything that is wrong with them. It waits
// for an initialize that is at work, which says what MCP transports are advertised.
func (a *agent) decodeSession(ctx context.Context, params json.RawMessage, f sessionFields) (sessionParams, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionParams{}, err
	}
	object, wrong := readParams(params, f.shape)
	if len(wrong) > 0 {
		return sessionParams{}, strictjson.Refuse(wrong...)
	}
	var p sessionParams
	if f.id == required {
		id, bad := object.Field("sessionId").Text()
		p.id, wrong = sessionstore.ID(id), bad
	}
	var bad []strictjson.Violation
	p.roots, bad = decodeRoots(object)
	wrong = append(wrong, bad...)
	p.servers, bad = decodeServers(object.Field("mcpServers"), f.servers, a.init.transports())
	wrong = append(wrong, bad...)
	if len(wrong) > 0 {
		return sessionParams{}, strictjson.Refuse(wrong...)
	}
	_, rest, err := takeSession(params)
	p.rest = rest
	return p, err
}

// decodeRoots reads cwd and additionalDirectories, and reports all that is wrong with either (A3, A4).
func decodeRoots(object strictjson.Object) (workspace.Roots, []strictjson.Violation) {
	cwd, wrongCwd := object.Field("cwd").Text()
	additional, wrong := directories(object.Field("additionalDirectories"))
	if wrongCwd == nil && wrong == nil {
		roots, err := workspace.NewRoots(cwd, additional)
		return roots, rootViolations(err)
	}
	if wrongCwd == nil {
		_, err := workspace.ParseDir(cwd)
		wrongCwd = rootViolations(err)
	}
	return workspace.Roots{}, append(wrongCwd, wrong...)
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
			wrong[i] = strictjson.NewViolation("additionalDirectories", nil, reason)
		case e.Root == 0:
			wrong[i] = strictjson.NewViolation("cwd", e.Path, reason)
		default:
			wrong[i] = strictjson.NewViolation("additionalDirectories", e.Path, reason).At(e.Root - 1)
		}
		wrong[i].Expected = e.Detail
	}
	return wrong
}

// directories reads additionalDirectories, which may be left out. If an entry is no string, the others are
// still checked.
func directories(field strictjson.Field) ([]string, []strictjson.Violation) {
	if !field.Present() {
		return nil, nil
	}
	paths, wrong := field.Texts()
	if wrong == nil {
		_, err := workspace.ParseDirs(paths)
		return paths, rootViolations(err)
	}
	items, notArray := field.Items()
	if notArray != nil {
		return nil, notArray
	}
	wrong = nil
	for i, item := range items {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		path, bad := item.Text()
		if bad == nil {
			_, err := workspace.ParseDirs([]string{path})
			bad = rootViolations(err)
		}
		for _, v := range bad {
			wrong = append(wrong, v.At(i))
		}
	}
	return nil, wrong
}
