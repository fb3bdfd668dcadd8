package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/history/handoff"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// attempt is one request to a child with which an openRequest may be met. It lives until the next
// one, and belongs to the goroutine that opens the session.
type attempt struct {
	request *openRequest
	use     *childUse     // of the child
	method  backend.Cause // of the request to the child
	target  state         // the child session to open or copy, without an id for a new one
	earlier *state        // see state.Earlier; what was said since is due in it
	// superseded is the child session that the opened one replaces because it keeps directories
	// which it must lose, nil for none.
	superseded *state
	// rejected is the child's answer if it did not load or resume a session before, or nil.
	rejected *jsonrpc.Error
}

// openResult is the child session that an attempt has opened.
type openResult struct {
	session *childSession
	result  backend.Raw // of the lifecycle request, without the session id
	shown   int         // updates of its history that were passed on
	// systemParts are what the request adds to the system prompt, nil for nothing.
	systemParts []contextPart
	refused     error // of the same request with our tool server, nil if the child takes that
}

// follow notes in a that the child has rejected the attempt before. The next activation first tries
// a saved session that the child has not said it does not know. A rejected copy says nothing about
// the session, which may still exist.
func (a *attempt) follow(before *attempt, rejection *jsonrpc.Error) {
	a.earlier, a.rejected = before.earlier, before.rejected
	if before.method != backend.Load && before.method != backend.Resume {
		return
	}
	a.rejected = rejection
	if a.earlier == nil && !saysUnknown(rejection) {
		a.earlier = &before.target
	}
}

// try sends the request, and again without our tool server if the child rejects that: some agents
// take no MCP servers, and do not say so.
func (a *attempt) try(ctx context.Context) (openResult, error) {
	o, err := a.run(ctx)
	servers := a.use.bridge.servers
	if o.shown > 0 || a.target.SentTools || !worthAnotherTry(err) ||
		saysUnknown(responseError(err)) || servers.tool(a.use.mode, state{}).name == "" {
		return o, err
	}
	servers.refusesTools.Store(true)
	again, failed := a.run(ctx)
	if failed != nil {
		servers.refusesTools.Store(false)
		return again, err
	}
	again.refused = err
	return again, nil
}

// run sends the request once.
func (a *attempt) run(ctx context.Context) (o openResult, err error) {
	b := a.use.bridge
	b.servers.relays.forget()
	params, err := a.lifecycleParams()
	if err != nil {
		return o, err
	}
	parts := b.writer.systemParts(a.use.child, a.use.mode)
	params = withSystemPrompt(params, parts)
	if a.method == backend.Load || a.method == backend.Resume {
		o, err = a.reopen(ctx, params)
	} else {
		o, err = a.create(ctx, params)
	}
	o.systemParts = parts
	return o, err
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (a *attempt) lifecycleParams() (params backend.Raw, err error) {
	b := a.use.bridge
	if a.use.mode == profiles.RootsByProtocol {
		params = strictjson.Set(b.params, protocol.AdditionalDirectories,
			backend.Encode(b.roots.Additional()))
	} else {
		params = strictjson.Remove(b.params, protocol.AdditionalDirectories)
	}
	// These requests need mcpServers. The client's own request may not have it.
	needsServers := a.method == backend.New || a.method == backend.Load
	if needsServers && strictjson.Find(params, protocol.MCPServers) == nil {
		params = strictjson.Set(params, protocol.MCPServers, backend.Raw(`[]`))
	}
	if params, err = b.servers.withRelays(params); err != nil {
		return nil, err
	}
	if a.method != backend.New {
		params = withSessionID(params, a.target.ID)
	}
	return b.servers.withTool(params, b.servers.tool(a.use.mode, a.target)), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request was abandoned, the session is closed again.
func (a *attempt) create(ctx context.Context, params backend.Raw) (o openResult, err error) {
	b := a.use.bridge
	if stop := a.request.stop; stop != nil { // the new session would lack the running turn
		if err := stop(ctx); err != nil {
			return o, err
		}
	}
	c := a.use.child
	c.router.begin()
	defer c.router.end()
	b.updates.end()
	if a.method == backend.Fork {
		b.updates.set(discarding) // some agents replay the copy
	}
	var created openResult // as soon as answered is closed
	var invalid error
	answered := make(chan struct{})
	_, err = c.conn.requestFunc(ctx, string(a.method), params,
		func(response backend.Raw, err error) {
			defer close(answered)
			if invalid = err; err != nil {
				return
			}
			if created, invalid = a.created(response); invalid == nil {
				b.finishReplay(ctx)
			}
		})()
	if err == nil {
		return created, invalid
	}
	go func() {
		select {
		case <-answered:
		case <-c.done:
			return
		}
		if invalid == nil {
			created.session.abandon(b)
			c.discard(created.session.id)
		}
	}()
	return o, err
}

// created returns the session in a response of the child, which has created it.
func (a *attempt) created(response backend.Raw) (openResult, error) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return openResult{}, fmt.Errorf("the agent answered %s without a session id", a.method)
	}
	a.use.changed = true
	cs, attached := newChildSession(a.use, id)
	if !attached {
		return openResult{}, errDuplicateID
	}
	a.use.child.router.release(cs.key)
	return openResult{session: cs, result: result}, nil
}

// reopen loads or resumes the child session that was saved.
func (a *attempt) reopen(ctx context.Context, params backend.Raw) (o openResult, err error) {
	b := a.use.bridge
	cs, err := a.joinSaved(ctx)
	if err != nil {
		return o, err
	}
	uses := a.method == backend.Load && a.request.usesReplay()
	late := a.method == backend.Load && b.proxy.options.Profile.Replay.Late
	if uses {
		b.updates.set(replaying)
	} else {
		b.updates.set(discarding)
	}
	replayed := 0
	o.session = cs
	o.result, err = a.use.child.conn.requestFunc(ctx, string(a.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				replayed = b.finishReplay(ctx)
			}
		})()
	if err == nil && late {
		a.awaitReplay(ctx)
		replayed = b.finishReplay(ctx)
	}
	if responseError(err) == nil { // otherwise it has changed nothing
		cs.locked(func() { a.use.changed = true })
	}
	if err == nil {
		o.shown = replayed
	} else {
		o.shown, _ = b.updates.end() // not replayed: a late response may be setting it
		a.undoJoin(ctx, cs, err)
	}
	if !uses {
		o.shown = 0 // what came was dropped
	}
	return o, err
}

// joinSaved makes the session a user of the child session that was saved, and routes its messages
// there. It ends a turn that is running in it.
func (a *attempt) joinSaved(ctx context.Context) (*childSession, error) {
	replaced := a.request.replaced()
	if replaced != nil && a.request.stop != nil {
		// The child cannot open a session while a turn is running in it, and the turn's updates
		// would be mixed with the replay.
		if err := a.request.stop(ctx); err != nil {
			return nil, err
		}
	}
	if replaced != nil && replaced.key == a.target.key() && replaced.child == a.use.child {
		replaced.join(a.use)
		return replaced, nil
	}
	cs, attached := newChildSession(a.use, a.target.ID)
	if !attached {
		return nil, errAlreadyOpen
	}
	return cs, nil
}

var errAlreadyOpen = errors.New(
	"the agent's session is already open here under another id: close that one first")

// undoJoin undoes joinSaved after the lifecycle request has failed. If there was no response, the
// child may have opened the session anyway.
func (a *attempt) undoJoin(ctx context.Context, cs *childSession, err error) {
	if responseError(err) != nil {
		cs.abandon(a.use.bridge)
	} else {
		cs.drop(context.WithoutCancel(ctx), a.use.bridge)
	}
}

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay has ended. The child writes the rest of a replay while it
// waits for input, so the replay has ended when the child answers a request without having replayed
// more.
func (a *attempt) awaitReplay(ctx context.Context) {
	c := a.use.child
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for before := -1; ; {
		now := a.use.bridge.updates.soFar()
		if now == before {
			return
		}
		before = now
		_, err := c.conn.request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			c.log.Debug("the agent may still replay a conversation", "error", err)
			return
		}
	}
}

// commit makes the opened child session the current one, and announces its roots and commands. If
// it fails, the session leaves the child session.
func (a *attempt) commit(ctx context.Context, o openResult) (backend.Opened, error) {
	b, c := a.use.bridge, a.use.child
	history, err := a.adopt(ctx, o)
	if err != nil {
		o.session.drop(context.WithoutCancel(ctx), b)
		return backend.Opened{}, err
	}
	b.servers.relays.publish(b)
	b.commands.announceRoots(ctx, b.host.Catalog(), b.host)
	opened := backend.Opened{Result: o.result}
	agent := cmp.Or(b.proxy.options.Profile.Title, c.info.Name, "the agent")
	if a.method == backend.New && a.rejected != nil && history != "" {
		opened.Notice = fmt.Sprintf("%s does not open its own session: %s. The conversation "+
			"continues in a new session of %[1]s, which gets what was said so far. The next load "+
			"tries the agent's own session again.\n\n",
			agent, text.Line(a.rejected.Error(), maxTitle))
	}
	if o.refused != nil {
		opened.Notice += fmt.Sprintf("%s does not take acp-agent's own MCP server, with tools for "+
			"additional folders: %s. The session goes on without it: the agent is told the "+
			"folders' paths, and reaches them with its own tools.\n\n",
			agent, text.Line(o.refused.Error(), maxTitle))
	}
	if a.superseded != nil {
		opened.Superseded = a.superseded.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it the current one, and leaves the previous
// one. It returns the conversation to tell the child in its next prompt.
func (a *attempt) adopt(ctx context.Context, o openResult) (history string, err error) {
	if a.request.unlisted && a.method == backend.Load && o.shown == 0 {
		return "", backend.ErrUnknownSession // some agents load any id
	}
	saved, history, err := a.plan(o)
	if err != nil {
		return "", err
	}
	if err := a.use.bridge.host.SaveState(ctx, saved.encode()); err != nil {
		return "", err
	}
	before, err := a.use.bridge.current.replace(o.session, saved, history)
	if before != nil {
		before.drop(ctx, a.use.bridge)
	}
	return history, err
}

// plan returns the state to save for a child session, and the conversation to tell the child in its
// next prompt.
func (a *attempt) plan(o openResult) (saved state, history string, err error) {
	b, mode := a.use.bridge, a.use.mode
	saved = a.target
	saved.ID, saved.RootsMode = o.session.id, mode
	if a.earlier != nil && a.earlier.key() != saved.key() {
		saved.Earlier = a.earlier
	}
	saved.SentTools = b.servers.tool(mode, saved).files
	saved.RefusesTools = b.servers.refusesTools.Load()
	commands, _ := b.commands.ofRoots(b.host.Catalog())
	saved.Offered = len(commands) > 0
	lacksHistory := a.method == backend.New && a.request.cause != backend.New
	if lacksHistory || saved.HistoryDue {
		history, err = handoff.Digest(b.history, handoff.Options{
			Limit: b.proxy.options.limits.MaxContext, From: saved.From,
			Unsent: b.prompts.blocks(),
		})
		if err != nil {
			return state{}, "", err
		}
		saved.HistoryDue = history != ""
	}
	if mode != profiles.RootsByContext {
		saved.SentRoots = ""
	}
	if b.proxy.options.Profile.Roots.Keeps {
		saved.Granted = dirDigests(b.given(mode))
	}
	if a.method == backend.New {
		for _, part := range o.systemParts {
			*part.sent(&saved) = part.digest
		}
	}
	return saved, history, nil
}
