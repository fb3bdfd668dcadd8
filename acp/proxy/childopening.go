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

// childOpening opens the session of an openRequest in a child. It does not change.
type childOpening struct {
	request *openRequest
	use     *childUse // of the child
	terms   terms
}

// open makes attempts until one succeeds.
func (op childOpening) open(ctx context.Context) (backend.Opened, *childSession, error) {
	c := op.use.child
	others := op.use.bridge.roots.Additional()
	if op.terms.mode == profiles.RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", c.info.Name, "folders",
			others.Strings())
	}
	var failed []trial
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
		made := op.send(ctx, a)
		if made.err == nil {
			opened, err := op.commit(ctx, made, failed)
			return opened, made.session, err
		}
		failed = append(failed, made)
	}
}

// explain returns the error after all attempts have failed.
func (op childOpening) explain(failed []trial) error {
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

// send sends the request of an attempt. It first ends a turn of the session to replace, even if that
// waits for the child to start again: a new session would lack the turn, a child cannot open a
// session during one or twice, and the turn's updates would be mixed with a replay.
func (op childOpening) send(ctx context.Context, a attempt) trial {
	b := op.use.bridge
	b.servers.relays.forget()
	parts := b.writer.systemParts(op.use.child, a.target)
	params, err := op.lifecycleParams(a, parts)
	if stop := op.request.stop; err == nil && stop != nil {
		err = stop(ctx)
	}
	switch {
	case err != nil:
		return trial{attempt: a, err: err}
	case a.reopens():
		return op.reopen(ctx, a, params)
	}
	made := op.create(ctx, a, params)
	made.systemParts = parts
	return made
}

// lifecycleParams returns the params of the request to the child. They name the saved session,
// unless the request is for a new one. A child that takes additional directories by the protocol
// always gets the list, each once: Claude Code restarts if a session/load has an empty one that was
// left out of its session/new.
func (op childOpening) lifecycleParams(
	a attempt, parts []contextPart,
) (params backend.Raw, err error) {
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
	params = b.servers.withTool(params, b.servers.tool(a.target))
	return withSystemPrompt(params, parts), nil
}

// create asks the child to create a session, perhaps as a copy of the saved one. If the response
// comes after the request was abandoned, the session is closed again.
func (op childOpening) create(ctx context.Context, a attempt, params backend.Raw) trial {
	b, c := op.use.bridge, op.use.child
	c.router.begin()
	defer c.router.end()
	mode := live
	if a.method == backend.Fork {
		mode = discarding // some agents replay the copy
	}
	b.updates.set(mode)
	created := make(chan trial, 1)
	_, err := c.requestFunc(ctx, string(a.method), params,
		func(response backend.Raw, err error) {
			defer close(created)
			if err == nil {
				created <- op.created(ctx, a, response)
			}
		})()
	if err == nil {
		return <-created
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
	return trial{attempt: a, err: err}
}

// created returns how a is met by a response of the child, which has created a session.
func (op childOpening) created(ctx context.Context, a attempt, response backend.Raw) trial {
	id, result, err := strictjson.Take(response, protocol.SessionID)
	if err != nil || decodeID(id) == "" {
		return trial{attempt: a,
			err: fmt.Errorf("the agent answered %s without a session id", a.method)}
	}
	cs, attached := newChildSession(op.use, id)
	if !attached {
		return trial{attempt: a, err: errDuplicateID}
	}
	op.use.child.router.release(cs.key)
	op.use.bridge.finishReplay(ctx)
	return trial{attempt: a, session: cs, result: result}
}

// reopen loads or resumes the child session that was saved.
func (op childOpening) reopen(ctx context.Context, a attempt, params backend.Raw) trial {
	b := op.use.bridge
	cs, joined := op.joinSaved(a)
	if !joined {
		return trial{attempt: a, err: errAlreadyOpen}
	}
	mode := discarding
	if a.method == backend.Load && op.request.usesReplay() {
		mode = replaying
	}
	b.updates.set(mode)
	late := a.method == backend.Load && b.proxy.options.Profile.Replay.Late
	finished := make(chan int, 1)
	result, err := op.use.child.requestFunc(ctx, string(a.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				finished <- b.finishReplay(ctx)
			}
		})()
	passedOn := 0
	switch {
	case err == nil && late:
		op.awaitReplay(ctx)
		passedOn = b.finishReplay(ctx)
	case err == nil:
		passedOn = <-finished
	default:
		passedOn, _ = b.updates.end()
		if responseError(err) != nil {
			cs.abandon(b)
		} else { // the child may have opened the session anyway
			cs.drop(context.WithoutCancel(ctx), b)
		}
	}
	return trial{attempt: a, session: cs, result: result, passedOn: passedOn, err: err}
}

// joinSaved makes the bridge a user of the child session that was saved, unless another session has
// that open.
func (op childOpening) joinSaved(a attempt) (cs *childSession, joined bool) {
	cs = op.request.replaced()
	if cs != nil && cs.key == a.target.key() && cs.child == op.use.child {
		cs.join(op.use)
		return cs, true
	}
	return newChildSession(op.use, a.target.ID)
}

var errAlreadyOpen = errors.New(
	"the agent's session is already open here under another id: close that one first")

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// awaitReplay waits until a late replay has ended. The child writes the rest of a replay while it
// waits for input, so the replay has ended when the child answers a request without having replayed
// more.
func (op childOpening) awaitReplay(ctx context.Context) {
	c := op.use.child
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for before := -1; ; {
		now := op.use.bridge.updates.soFar()
		if now == before {
			return
		}
		before = now
		_, err := c.request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			c.log.Debug("the agent may still replay a conversation", "error", err)
			return
		}
	}
}

// commit makes the child session that made has opened the current one, and announces its roots and
// commands. If it fails, the bridge leaves the child session.
func (op childOpening) commit(
	ctx context.Context, made trial, failed []trial,
) (backend.Opened, error) {
	b := op.use.bridge
	history, err := op.adopt(ctx, made, failed)
	if err != nil {
		made.session.drop(context.WithoutCancel(ctx), b)
		return backend.Opened{}, err
	}
	b.servers.relays.publish(b)
	b.commands.announceRoots(ctx, b.host.Catalog(), b.host)
	opened := backend.Opened{Result: made.result}
	agent := cmp.Or(b.proxy.options.Profile.Title, op.terms.info.Name, "the agent")
	var rejected error // of the last load or resume
	for _, f := range failed {
		if f.reopens() {
			rejected = f.err
		}
	}
	if rejected != nil && made.method == backend.New && history != "" {
		opened.Notice = fmt.Sprintf("%s does not open its own session: %s. The conversation "+
			"continues in a new session of %[1]s, which gets what was said so far. The next load "+
			"tries the agent's own session again.\n\n",
			agent, text.Line(rejected.Error(), maxTitle))
	}
	if made.target.RefusesTools && !op.request.saved.RefusesTools {
		refusal := failed[len(failed)-1].err
		opened.Notice += fmt.Sprintf("%s does not take acp-agent's own MCP server, with tools for "+
			"additional folders: %s. The session goes on without it: the agent is told the "+
			"folders' paths, and reaches them with its own tools.\n\n",
			agent, text.Line(refusal.Error(), maxTitle))
	}
	superseded := op.request.saved
	replaces := !made.reopens() && op.request.cause != backend.Fork
	if replaces && superseded.keepsOther(op.terms.given) { // which it must lose
		superseded.Earlier = nil
		opened.Superseded = superseded.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it the current one, and leaves the previous
// one. It returns the conversation to tell the child in its next prompt.
func (op childOpening) adopt(
	ctx context.Context, made trial, failed []trial,
) (history string, err error) {
	b := op.use.bridge
	if op.request.unlisted && made.method == backend.Load && made.passedOn == 0 {
		return "", backend.ErrUnknownSession // some agents load any id
	}
	saved, history, err := op.plan(made, failed)
	if err != nil {
		return "", err
	}
	if err := b.host.SaveState(ctx, saved.encode()); err != nil {
		return "", err
	}
	before, err := b.current.replace(made.session, saved, history)
	if before != nil {
		before.drop(ctx, b)
	}
	return history, err
}

// plan returns the state to save for a child session, and the conversation to tell the child in its
// next prompt.
func (op childOpening) plan(made trial, failed []trial) (saved state, history string, err error) {
	b := op.use.bridge
	saved = made.target
	saved.ID = made.session.id
	earlier := op.request.earlierAfter(op.terms, failed)
	if earlier != nil && earlier.key() != saved.key() {
		saved.Earlier = earlier
	}
	saved.SentTools = b.servers.tool(saved).files
	commands, _ := b.commands.ofRoots(b.host.Catalog())
	saved.Offered = len(commands) > 0
	lacksHistory := made.method == backend.New && op.request.cause != backend.New
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
	if made.method == backend.New {
		for _, part := range made.systemParts {
			*part.sent(&saved) = part.digest
		}
	}
	return saved, history, nil
}
