package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/history/handoff"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// opener opens a session in the child that was chosen, for the bridge that uses it: one that the
// client asks for, or again one whose child has ended. It releases nothing: the caller closes the
// use if that fails.
type opener struct {
	plan
	previous *bridge   // that is replaced; see newBridge
	use      *childUse // of the child by the bridge
}

// open makes trials until one succeeds, and makes the use the current one of the bridge.
func (o opener) open(ctx context.Context) (backend.Opened, error) {
	others := o.use.bridge.roots.Additional()
	if o.mode == profiles.RootsByContext && others.Len() > 0 {
		o.use.child.Log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", o.use.child.Info.Name, "folders",
			others.Strings())
	}
	trials := o.try(func(t trial) trial { return o.send(ctx, t) })
	if len(trials) == 0 {
		return backend.Opened{}, backend.ErrUnknownSession
	}
	made, failed := trials[len(trials)-1], trials[:len(trials)-1]
	o.use.session = made.session // also after an error: the child may have opened it
	switch {
	case made.err == nil:
		return o.commit(ctx, made, failed)
	case o.asked.MustExist && worthAnotherTry(made.err):
		return backend.Opened{}, fmt.Errorf("%w: %w", backend.ErrUnknownSession, made.err)
	}
	return backend.Opened{}, made.err
}

// send sends the request of a trial, and returns how it has ended. It first ends a turn of the
// session to replace, even if that waits for the child to start again: a new session would lack the
// turn, a child cannot open a session during one or twice, and the turn's updates would be mixed
// with a replay.
func (o opener) send(ctx context.Context, t trial) trial {
	b := o.use.bridge
	if !b.sharesRelays() { // otherwise another session has our tool server running
		b.relays.Forget()
	}
	if target := t.target; b.proxy.options.Profile.Context.ByServer {
		b.relays.Expect(func() []briefing.Part { return b.parts(target) })
	}
	parts := b.systemParts(o.use.child.Info, t.target)
	params, err := o.lifecycleParams(t)
	if stop := o.asked.Stop; err == nil && stop != nil {
		err = stop(ctx)
	}
	if err != nil {
		return t.failed(err)
	}
	if t.method == backend.New {
		_, t.target.Sent = t.target.Changes(parts, nil)
	}
	request := o.create
	if t.reopens() {
		request = o.reopen
	}
	if t = request(ctx, t, briefing.WithSystemPrompt(params, parts)); t.isRejected() {
		// The message is not logged: it may quote the request with the secrets of MCP servers.
		o.use.child.Log.Warn("the agent rejected a request for a session", "request", t.method,
			"code", child.Rejection(t.err).Code)
	}
	return t
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (o opener) lifecycleParams(t trial) (params backend.Raw, err error) {
	b := o.use.bridge
	if o.mode == profiles.RootsByProtocol {
		params = strictjson.Set(b.params, protocol.AdditionalDirectories,
			backend.Encode(b.roots.Additional()))
	} else {
		params = strictjson.Remove(b.params, protocol.AdditionalDirectories)
	}
	// These requests need mcpServers. The client's own request may not have it.
	needsServers := t.method == backend.New || t.method == backend.Load
	if needsServers && strictjson.Find(params, protocol.MCPServers) == nil {
		params = strictjson.Set(params, protocol.MCPServers, backend.Raw(`[]`))
	}
	if params, err = b.withRelays(params); err != nil {
		return nil, err
	}
	if t.method != backend.New {
		params = withSessionID(params, t.target.ID)
	}
	return b.withTool(params, t.target), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request has failed, the session is closed again.
func (o opener) create(ctx context.Context, t trial, params backend.Raw) trial {
	c := o.use.child
	defer c.Router.Hold()()
	created := make(chan trial, 1)
	_, err := c.RequestFunc(ctx, string(t.method), params,
		func(response backend.Raw, err error) {
			defer close(created)
			if err == nil {
				created <- o.created(ctx, t, response)
			}
		})()
	if err == nil {
		return <-created
	}
	go func() {
		select {
		case late := <-created:
			if late.session != nil {
				discard(late.session)
			}
		case <-c.Done():
		}
	}()
	return t.failed(err)
}

// discard closes and deletes a session that is not needed. It does not wait for the answers.
func discard(cs *childSession) {
	cs.detach()
	c := cs.child
	c.Log.Info("closing a session that the agent created too late")
	params := withSessionID(backend.Raw(`{}`), cs.id)
	for _, method := range []string{protocol.SessionClose, protocol.SessionDelete} {
		if c.Info.Serves(method) {
			_ = c.Request(context.Background(), method, params)
		}
	}
}

// created returns how t has ended with a response of the child, which has created a session.
func (o opener) created(ctx context.Context, t trial, response backend.Raw) trial {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return t.failed(fmt.Errorf("the agent answered %s without a session id", t.method))
	}
	mode := live
	if t.method == backend.Fork {
		mode = discarding // some agents replay the copy
	}
	cs, attached := newChildSession(o.use, id, mode)
	if !attached {
		return t.failed(errDuplicateID)
	}
	o.use.child.Router.DeliverHeld(cs.key)
	o.use.bridge.finishReplay(ctx, cs)
	t.session, t.result = cs, result
	return t
}

// reopen loads or resumes the child session that was saved.
func (o opener) reopen(ctx context.Context, t trial, params backend.Raw) trial {
	b := o.use.bridge
	mode := discarding
	if t.method == backend.Load && o.usesReplay() {
		mode = replaying
	}
	cs, joined := o.joinSaved(t, mode)
	if !joined {
		return t.failed(errAlreadyOpen)
	}
	late := t.method == backend.Load && b.proxy.options.Profile.Replay.Late
	finished := make(chan int, 1)
	t.session = cs
	t.result, t.err = o.use.child.RequestFunc(ctx, string(t.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				finished <- b.finishReplay(ctx, cs)
			}
		})()
	switch {
	case t.err == nil && late:
		o.awaitReplay(ctx, cs)
		t.passedOn = b.finishReplay(ctx, cs)
	case t.err == nil:
		t.passedOn = <-finished
	default:
		t.passedOn, _ = cs.endReplay()
		if child.Rejection(t.err) != nil { // otherwise the child may have opened it anyway
			cs.undoJoin(o.use)
			t.session = nil
		}
	}
	return t
}

// joinSaved makes the bridge a user of the child session that was saved, unless another session has
// that open.
func (o opener) joinSaved(t trial, mode updateMode) (cs *childSession, joined bool) {
	before := o.previous.current.running()
	if before != nil && before.session.key == t.target.key() && before.child == o.use.child {
		before.session.join(o.use, mode)
		return before.session, true
	}
	return newChildSession(o.use, t.target.ID, mode)
}

var (
	errAlreadyOpen = errors.New(
		"the agent's session is already open here under another id: close that one first")
	errDuplicateID = errors.New("the agent gave a new session the id of an existing one")
)

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay of cs has ended. The child writes the rest of a replay
// while it waits for input, so the replay has ended when the child answers a request without having
// replayed more.
func (o opener) awaitReplay(ctx context.Context, cs *childSession) {
	c := o.use.child
	limit := o.use.bridge.proxy.options.limits.EndTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, child.ErrNoAnswer)
	defer cancel()
	for before := -1; ; {
		now := cs.replayed()
		if now == before {
			return
		}
		before = now
		_, err := c.Request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && child.Rejection(err) == nil {
			c.Log.Debug("the agent may still replay a conversation", "error", err)
			return
		}
	}
}

// commit makes the child session that made has opened the current one, and announces its roots and
// commands.
func (o opener) commit(ctx context.Context, made trial, failed []trial) (backend.Opened, error) {
	b := o.use.bridge
	history, err := o.adopt(ctx, made, failed)
	if err != nil {
		return backend.Opened{}, err
	}
	b.relays.Publish()
	b.commands.AnnounceRoots(ctx, b.host.Catalog(), b.host)
	opened := backend.Opened{Result: made.result, Notice: o.notice(made, failed, history)}
	superseded := o.saved
	replaces := !made.reopens() && o.asked.Cause != backend.Fork
	if replaces && superseded.keepsOther(o.given) { // which it must lose
		superseded.Earlier = nil
		opened.Superseded = superseded.encode()
	}
	return opened, nil
}

// notice returns what the user is told of what the child has rejected before the session was
// opened, "" for nothing. history is the conversation that the child is told in its next prompt.
func (o opener) notice(made trial, failed []trial, history string) (notice string) {
	agent := cmp.Or(o.use.bridge.proxy.options.Profile.Title, o.use.child.Info.Name, "the agent")
	var rejected error // of the last load or resume
	for _, f := range failed {
		if f.reopens() {
			rejected = f.err
		}
	}
	if rejected != nil && made.method == backend.New && history != "" {
		notice = fmt.Sprintf("%s does not open its own session: %s. The conversation "+
			"continues in a new session of %[1]s, which gets what was said so far. The next load "+
			"tries the agent's own session again.\n\n",
			agent, text.Line(rejected.Error(), maxTitle))
	}
	if made.refusal != nil {
		notice += fmt.Sprintf("%s does not take acp-agent's own MCP server, with tools for "+
			"additional folders: %s. The session goes on without it: the agent is told the "+
			"folders' paths, and reaches them with its own tools.\n\n",
			agent, text.Line(made.refusal.Error(), maxTitle))
	}
	return notice
}

// adopt saves the state of the child session, makes it the current one, and closes the use of the
// previous one. It returns the conversation to tell the child in its next prompt.
func (o opener) adopt(ctx context.Context, made trial, failed []trial) (history string, err error) {
	b := o.use.bridge
	if o.asked.Unlisted && made.method == backend.Load && made.passedOn == 0 {
		return "", backend.ErrUnknownSession // some agents load any id
	}
	saved, history, err := o.stateAfter(made, failed)
	if err != nil {
		return "", err
	}
	if err := b.host.SaveState(ctx, saved.encode()); err != nil {
		return "", err
	}
	before, err := b.current.replace(o.use, saved, history)
	if before != nil {
		before.close(ctx)
	}
	return history, err
}

// stateAfter returns the state to save for a child session, and the conversation to tell the child
// in its next prompt.
func (o opener) stateAfter(made trial, failed []trial) (saved state, history string, err error) {
	b := o.use.bridge
	saved = made.target
	saved.ID = made.session.id
	earlier := o.earlierAfter(failed)
	if earlier != nil && earlier.key() != saved.key() {
		saved.Earlier = earlier
	}
	saved.SentTools = b.tool(saved).Files
	saved.Offered = b.commands.Offers(b.host.Catalog())
	lacksHistory := made.method == backend.New && o.asked.Cause != backend.New
	if lacksHistory || saved.HistoryDue {
		history, err = handoff.Digest(b.history, handoff.Options{
			Limit: b.proxy.options.limits.MaxContext, From: saved.From,
			Unsent: b.current.unsentBlocks(),
		})
		if err != nil {
			return state{}, "", err
		}
		saved.HistoryDue = history != ""
	}
	if b.proxy.options.Profile.Roots.Keeps {
		saved.Granted = dirDigests(o.given)
	}
	return saved, history, nil
}
