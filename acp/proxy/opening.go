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
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// opening is an openRequest that is met by a child. It does not change.
type opening struct {
	request *openRequest
	use     *childUse // of the child
	terms   terms
}

// newOpening returns the opening of a session in the child that u uses.
func newOpening(r *openRequest, u *childUse) opening {
	tool := u.bridge.servers.tool(state{RootsMode: u.mode})
	return opening{request: r, use: u, terms: terms{info: u.child.info, mode: u.mode,
		given: u.bridge.given(u.mode), tools: tool.name != ""}}
}

// openResult is the child session that an attempt has opened.
type openResult struct {
	session *childSession
	result  backend.Raw // of the lifecycle request, without the session id
	shown   int         // updates of its history that were passed on
	// systemParts are what the request adds to the system prompt, nil for nothing.
	systemParts []contextPart
}

// open makes attempts until one succeeds.
func (op opening) open(ctx context.Context) (backend.Opened, *childSession, error) {
	c := op.use.child
	others := op.use.bridge.roots.Additional()
	if op.terms.mode == profiles.RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", c.info.Name, "folders",
			others.Strings())
	}
	var failed []failure
	for {
		a, found := op.request.nextAttempt(op.terms, failed)
		if !found {
			return backend.Opened{}, nil, op.explain(failed)
		}
		if len(failed) > 0 {
			last := failed[len(failed)-1]
			// Its message is not logged, because it may quote the request with the secrets of MCP
			// servers.
			c.log.Warn("the agent rejected a request for a session: trying another one",
				"rejected", last.method, "code", responseError(last.err).Code, "next", a.method)
		}
		o, err := op.send(ctx, a)
		if err == nil {
			opened, err := op.commit(ctx, a, o, failed)
			return opened, o.session, err
		}
		failed = append(failed, failure{attempt: a, err: err, shown: o.shown})
	}
}

// explain returns the error after all attempts have failed.
func (op opening) explain(failed []failure) error {
	if len(failed) == 0 {
		return backend.ErrUnknownSession
	}
	err := failed[len(failed)-1].err
	if !op.request.mustExist || !worthAnotherTry(err) {
		return err
	}
	op.use.child.log.Info("the agent rejected a request for a session that only it may know",
		"code", responseError(err).Code)
	return fmt.Errorf("%w: %w", backend.ErrUnknownSession, err)
}

// send sends the request of an attempt.
func (op opening) send(ctx context.Context, a attempt) (openResult, error) {
	b := op.use.bridge
	b.servers.relays.forget()
	params, err := op.lifecycleParams(a)
	if err != nil {
		return openResult{}, err
	}
	parts := b.writer.systemParts(op.use.child, a.target)
	params = withSystemPrompt(params, parts)
	if a.reopens() {
		return op.reopen(ctx, a, params)
	}
	return op.create(ctx, a, params, parts)
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (op opening) lifecycleParams(a attempt) (params backend.Raw, err error) {
	b := op.use.bridge
	if op.terms.mode == profiles.RootsByProtocol {
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
	return b.servers.withTool(params, b.servers.tool(a.target)), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request was abandoned, the session is closed again.
func (op opening) create(
	ctx context.Context, a attempt, params backend.Raw, parts []contextPart,
) (openResult, error) {
	b, c := op.use.bridge, op.use.child
	if stop := op.request.stop; stop != nil { // the new session would lack the running turn
		if err := stop(ctx); err != nil {
			return openResult{}, err
		}
	}
	c.router.begin()
	defer c.router.end()
	b.updates.end()
	if a.method == backend.Fork {
		b.updates.set(discarding) // some agents replay the copy
	}
	type creation struct {
		openResult
		err error
	}
	created := make(chan creation, 1) // closed once the child has answered
	_, err := c.conn.requestFunc(ctx, string(a.method), params,
		func(response backend.Raw, err error) {
			defer close(created)
			if err != nil {
				return
			}
			o, err := op.created(a, response)
			if err == nil {
				o.systemParts = parts
				b.finishReplay(ctx)
			}
			created <- creation{o, err}
		})()
	if err == nil {
		o := <-created
		return o.openResult, o.err
	}
	go func() {
		select {
		case late := <-created:
			if late.session != nil {
				late.session.abandon(b)
				c.discard(late.session.id)
			}
		case <-c.done:
		}
	}()
	return openResult{}, err
}

// created returns the session in a response of the child, which has created it.
func (op opening) created(a attempt, response backend.Raw) (openResult, error) {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return openResult{}, fmt.Errorf("the agent answered %s without a session id", a.method)
	}
	cs, attached := newChildSession(childUser{use: op.use, changed: true}, id)
	if !attached {
		return openResult{}, errDuplicateID
	}
	op.use.child.router.release(cs.key)
	return openResult{session: cs, result: result}, nil
}

// reopen loads or resumes the child session that was saved.
func (op opening) reopen(ctx context.Context, a attempt, params backend.Raw) (openResult, error) {
	b := op.use.bridge
	cs, err := op.joinSaved(ctx, a)
	if err != nil {
		return openResult{}, err
	}
	mode := discarding
	if a.method == backend.Load && op.request.usesReplay() {
		mode = replaying
	}
	b.updates.set(mode)
	late := a.method == backend.Load && b.proxy.options.Profile.Replay.Late
	replayed := make(chan int, 1)
	result, err := op.use.child.conn.requestFunc(ctx, string(a.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				replayed <- b.finishReplay(ctx)
			}
		})()
	if responseError(err) == nil { // otherwise it has changed nothing
		cs.noteChange(b)
	}
	shown := 0
	switch {
	case err != nil:
		shown, _ = b.updates.end()
		op.undoJoin(ctx, cs, err)
	case late:
		op.awaitReplay(ctx)
		shown = b.finishReplay(ctx)
	default:
		shown = <-replayed
	}
	if mode == discarding {
		shown = 0 // what came was dropped
	}
	return openResult{session: cs, result: result, shown: shown}, err
}

// joinSaved makes the session a user of the child session that was saved, and routes its messages
// there. It ends a turn that is running in it.
func (op opening) joinSaved(ctx context.Context, a attempt) (*childSession, error) {
	replaced := op.request.replaced()
	if replaced != nil && op.request.stop != nil {
		// The child cannot open a session while a turn is running in it, and the turn's updates
		// would be mixed with the replay.
		if err := op.request.stop(ctx); err != nil {
			return nil, err
		}
	}
	if replaced != nil && replaced.key == a.target.key() && replaced.child == op.use.child {
		replaced.join(op.use)
		return replaced, nil
	}
	cs, attached := newChildSession(childUser{use: op.use}, a.target.ID)
	if !attached {
		return nil, errAlreadyOpen
	}
	return cs, nil
}

var errAlreadyOpen = errors.New(
	"the agent's session is already open here under another id: close that one first")

// undoJoin undoes joinSaved after the lifecycle request has failed. If there was no response, the
// child may have opened the session anyway.
func (op opening) undoJoin(ctx context.Context, cs *childSession, err error) {
	if responseError(err) != nil {
		cs.abandon(op.use.bridge)
	} else {
		cs.drop(context.WithoutCancel(ctx), op.use.bridge)
	}
}

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay has ended. The child writes the rest of a replay while it
// waits for input, so the replay has ended when the child answers a request without having replayed
// more.
func (op opening) awaitReplay(ctx context.Context) {
	c := op.use.child
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for before := -1; ; {
		now := op.use.bridge.updates.soFar()
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

// commit makes the child session that an attempt has opened the current one, and announces its
// roots and commands. If it fails, the bridge leaves the child session.
func (op opening) commit(
	ctx context.Context, a attempt, o openResult, failed []failure,
) (backend.Opened, error) {
	b := op.use.bridge
	history, err := op.adopt(ctx, a, o, failed)
	if err != nil {
		o.session.drop(context.WithoutCancel(ctx), b)
		return backend.Opened{}, err
	}
	b.servers.relays.publish(b)
	b.commands.announceRoots(ctx, b.host.Catalog(), b.host)
	opened := backend.Opened{Result: o.result}
	agent := cmp.Or(b.proxy.options.Profile.Title, op.terms.info.Name, "the agent")
	rejection := lastRejection(failed)
	if a.method == backend.New && rejection != nil && history != "" {
		opened.Notice = fmt.Sprintf("%s does not open its own session: %s. The conversation "+
			"continues in a new session of %[1]s, which gets what was said so far. The next load "+
			"tries the agent's own session again.\n\n",
			agent, text.Line(rejection.Error(), maxTitle))
	}
	if a.target.RefusesTools && !op.request.saved.RefusesTools {
		refusal := failed[len(failed)-1].err
		opened.Notice += fmt.Sprintf("%s does not take acp-agent's own MCP server, with tools for "+
			"additional folders: %s. The session goes on without it: the agent is told the "+
			"folders' paths, and reaches them with its own tools.\n\n",
			agent, text.Line(refusal.Error(), maxTitle))
	}
	if superseded := op.request.superseded(op.terms, a); superseded != nil {
		opened.Superseded = superseded.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it the current one, and leaves the previous
// one. It returns the conversation to tell the child in its next prompt.
func (op opening) adopt(
	ctx context.Context, a attempt, o openResult, failed []failure,
) (history string, err error) {
	b := op.use.bridge
	if op.request.unlisted && a.method == backend.Load && o.shown == 0 {
		return "", backend.ErrUnknownSession // some agents load any id
	}
	saved, history, err := op.plan(a, o, failed)
	if err != nil {
		return "", err
	}
	if err := b.host.SaveState(ctx, saved.encode()); err != nil {
		return "", err
	}
	before, err := b.current.replace(o.session, saved, history)
	if before != nil {
		before.drop(ctx, b)
	}
	return history, err
}

// plan returns the state to save for a child session, and the conversation to tell the child in its
// next prompt.
func (op opening) plan(
	a attempt, o openResult, failed []failure,
) (saved state, history string, err error) {
	b := op.use.bridge
	saved = a.target
	saved.ID = o.session.id
	earlier := op.request.earlierAfter(op.terms, failed)
	if earlier != nil && earlier.key() != saved.key() {
		saved.Earlier = earlier
	}
	saved.SentTools = b.servers.tool(saved).files
	commands, _ := b.commands.ofRoots(b.host.Catalog())
	saved.Offered = len(commands) > 0
	lacksHistory := a.method == backend.New && op.request.cause != backend.New
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
	if saved.RootsMode != profiles.RootsByContext {
		saved.SentRoots = ""
	}
	if b.proxy.options.Profile.Roots.Keeps {
		saved.Granted = dirDigests(op.terms.given)
	}
	if a.method == backend.New {
		for _, part := range o.systemParts {
			*part.sent(&saved) = part.digest
		}
	}
	return saved, history, nil
}
