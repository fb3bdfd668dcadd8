package proxy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// childSession is a session of a child, from before the request that opens it until its last user
// leaves. While one of our sessions replaces another, both use it: the child's messages go to the
// latest.
type childSession struct {
	child   *child.Process
	id      backend.Raw   // as the child sent it
	key     string        // the id as a string
	barrier child.Barrier // for the child's messages
	root    *subagent     // gets the messages about the session itself

	mu        sync.Mutex
	users     []*childUse     // the latest last
	updates   updateFilter    // for the latest user
	prompts   []*prompt       // that the child has not answered, in the order they were sent
	settings  []settingChange // that were made in it
	subagents []*subagent     // below root, in the order in which they were announced
}

// newChildSession returns a session of the child of u, its user. attached is false if another
// session or a subagent has the id; otherwise the session gets the child's messages. Its updates
// are handled by mode until endReplay.
func newChildSession(
	u *childUse, id backend.Raw, mode updateMode,
) (cs *childSession, attached bool) {
	cs = &childSession{child: u.child, id: id, key: decodeID(id), users: []*childUse{u},
		updates: updateFilter{mode: mode}}
	cs.root = &subagent{session: cs, id: cs.key}
	return cs, cs.child.Router.Add(cs.key, cs.root)
}

// join adds a user, which gets the child's messages from now on. Updates are handled by mode until
// endReplay.
func (cs *childSession) join(u *childUse, mode updateMode) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.users = append(cs.users, u)
	cs.updates = updateFilter{mode: mode}
}

// takeUpdate returns what to do with an update.
func (cs *childSession) takeUpdate(u backend.Update) updateMode {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.updates.take(u)
}

// replayed returns the number of updates of a replay so far, without those that are kept.
func (cs *childSession) replayed() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.updates.replayed
}

// endReplay makes updates live. It returns how many of the history were passed on before, and the
// latest states.
func (cs *childSession) endReplay() (passedOn int, states []backend.Update) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	replay := cs.updates
	cs.updates = updateFilter{}
	if replay.mode == replaying {
		passedOn = replay.replayed
	}
	return passedOn, replay.states
}

// latest returns the latest user, and the prompt that the child's updates belong to. Both may be
// nil.
func (cs *childSession) latest() (*bridge, *prompt) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.users) == 0 {
		return nil, nil
	}
	return cs.users[len(cs.users)-1].bridge, cs.runningPromptLocked()
}

// isAttached reports whether the session gets the child's messages. Otherwise it must be opened
// again before it is used.
func (cs *childSession) isAttached() bool { return cs.child.Router.Find(cs.key) == cs.root }

// detach lets the session and its subagents get no more messages of the child.
func (cs *childSession) detach() {
	cs.child.Router.Remove(func(to child.Recipient) bool {
		sub, ok := to.(*subagent)
		return ok && sub.session == cs
	})
}

// leave removes a user, and reports whether it was the last one. If it was the latest of several,
// it has, or may have, changed the child's session, which is detached: the user before must open it
// again.
func (cs *childSession) leave(u *childUse) (last bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	at := slices.Index(cs.users, u)
	cs.users = slices.Delete(cs.users, at, at+1)
	if at > 0 && at == len(cs.users) {
		cs.detach()
	}
	return len(cs.users) == 0
}

// undoJoin removes a user whose request for the child's session was rejected. If it was the only
// one, the session is detached.
func (cs *childSession) undoJoin(u *childUse) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.users = slices.DeleteFunc(cs.users, func(other *childUse) bool { return other == u })
	if len(cs.users) == 0 {
		cs.detach()
	}
}

// callClient returns the work for a request of the child to the client of b.
func (cs *childSession) callClient(b *bridge, m child.Message, from *subagent) backend.Work {
	if work, own := cs.child.OwnFile(m.Ctx, b.roots, m.Method, m.Params); own {
		return work
	}
	made := m.Params
	if m.Method == protocol.RequestPermission {
		made = protocol.MapToolCallReferences(made, "toolCall", cs.keyOf)
	}
	params, err := cs.child.Confine(m.Method, made)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	return from.client(b.setup, made).Call(m.Ctx, m.Method, params)
}

// handleUpdate passes on an update of from. p is the prompt in whose turn it came, or nil. If it is
// about a subagent, the messages that are held for that follow.
func (cs *childSession) handleUpdate(b *bridge, p *prompt, m child.Message, from *subagent) error {
	about, err := cs.passUpdate(b, p, m, from)
	if about != nil {
		cs.child.Router.DeliverHeld(about.id)
	}
	return err
}

// passUpdate passes an update on, and returns the subagent that it is about, or nil.
func (cs *childSession) passUpdate(
	b *bridge, p *prompt, m child.Message, from *subagent,
) (about *subagent, err error) {
	u := sessionstore.StoredUpdate(m.Params)
	if u.Kind == "" {
		if u, err = backend.ParseUpdate(m.Params); err != nil {
			return nil, err
		}
	}
	if u.Kind == sessionstore.SubagentUpdate {
		if u, about, err = cs.noteSubagent(b, from, u); err != nil {
			return nil, err
		}
	}
	u.Raw = protocol.MapUpdateReferences(string(u.Kind), u.Raw, cs.keyOf)
	if from != cs.root {
		return about, b.handleSubagentUpdate(m.Ctx, cs, from, u)
	}
	return about, b.handleUpdate(m.Ctx, cs, p, u)
}

// forward sends a request of the client. Messages that the child sends after its response reach the
// client after our response.
func (cs *childSession) forward(
	ctx context.Context, method string, params backend.Raw,
) backend.Work {
	childParams := withSessionID(params, cs.id)
	return cs.child.RequestFunc(ctx, method, childParams, func(result backend.Raw, err error) {
		if err == nil {
			cs.keepSetting(method, params)
		}
		cs.barrier.Add(jsonrpc.Answered(ctx))
	})
}

// sendPrompt sends a prompt with the given params, and returns nil if its turn was cancelled.
// Because session/cancel is sent with the same lock, neither overtakes the other.
func (cs *childSession) sendPrompt(p *prompt, params backend.Raw) backend.Work {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil
	}
	cs.addPromptLocked(p)
	return cs.child.RequestFunc(p.lasting, protocol.SessionPrompt, withSessionID(params, cs.id),
		func(backend.Raw, error) {
			cs.removePrompt(p)
			cs.barrier.Add(jsonrpc.Answered(p.ctx))
		})
}

// addPromptLocked attributes the child's updates to p once the prompts before it were answered.
// Late updates of abandoned and cancelled turns are attributed to p too, because the client already
// has the answers of those turns.
func (cs *childSession) addPromptLocked(p *prompt) {
	cs.prompts = append(slices.DeleteFunc(cs.prompts,
		func(before *prompt) bool { return before.abandoned || before.ctx.Err() != nil }), p)
}

// removePrompt undoes addPromptLocked.
func (cs *childSession) removePrompt(p *prompt) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.prompts = slices.DeleteFunc(cs.prompts, func(other *prompt) bool { return other == p })
}

// abandonPrompt notes that nobody waits for the answer to p.
func (cs *childSession) abandonPrompt(p *prompt) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	p.abandoned = true
}

// runningPromptLocked returns the prompt that the child's updates belong to, or nil. The child does
// not name it, but it runs one turn at a time, in the order of the prompts.
func (cs *childSession) runningPromptLocked() *prompt {
	for _, p := range cs.prompts {
		if !p.abandoned {
			return p
		}
	}
	if len(cs.prompts) == 0 {
		return nil
	}
	return cs.prompts[len(cs.prompts)-1]
}

// cancelPrompts sends session/cancel if the turns of all unanswered prompts end. If another turn
// continues, it only cancels the requests of those that end.
func (cs *childSession) cancelPrompts(params backend.Raw) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var ended []*prompt
	for _, p := range cs.prompts {
		if p.ctx.Err() != nil {
			ended = append(ended, p)
		}
	}
	if len(ended) < len(cs.prompts) {
		for _, p := range ended {
			p.end(fmt.Errorf("%w before another prompt of the session", child.ErrNoAnswer))
		}
	} else if len(ended) > 0 {
		cs.child.Cancel(withSessionID(params, cs.id))
	}
}

// settingChange is a request that chose the mode, the model or an option of a child session. It is
// repeated when the child is restarted, so that the session stays in the mode that the user sees.
type settingChange struct {
	method, option string
	params         backend.Raw // without sessionId
}

// keepSetting keeps a successful request if it changes a setting, in place of an earlier one.
func (cs *childSession) keepSetting(method string, params backend.Raw) {
	switch method {
	case protocol.SessionSetMode, protocol.SessionSetConfigOption, protocol.SessionSetModel:
	default:
		return
	}
	c := settingChange{method, strictjson.FindText(params, "configId"), params}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.settings = append(slices.DeleteFunc(cs.settings, func(before settingChange) bool {
		return before.method == c.method && before.option == c.option
	}), c)
}

// repeatSettings gives the session the settings of an earlier session of the child.
func (cs *childSession) repeatSettings(ctx context.Context, earlier *childSession) {
	earlier.mu.Lock()
	changes := slices.Clone(earlier.settings)
	earlier.mu.Unlock()
	for _, c := range changes {
		// Unlike in forward, ctx belongs to another request of the client.
		params := withSessionID(c.params, cs.id)
		if _, err := cs.child.Request(ctx, c.method, params)(); err != nil {
			cs.child.Log.Warn("the restarted agent rejected a setting", "method", c.method,
				"error", err)
			continue
		}
		cs.keepSetting(c.method, c.params)
	}
}
