package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/commands"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// bridge connects an open session of the client to a session of a child. It implements
// [backend.Session], and lives from Open to Close. It has no lock: what changes is in parts that
// have their own.
type bridge struct {
	*setup
	commands *commands.Commands
	current  current
	hints    hints
	reviving chan struct{} // a semaphore, held while the child is restarted for the session
}

// newBridge returns a bridge with the relays and commands of the one that it replaces, and that
// one: the bridge itself if there is none. saved is the state to continue or, for a fork, to copy.
func newBridge(s *setup, asked backend.Activation, saved state) (b, previous *bridge) {
	b = &bridge{setup: s, reviving: make(chan struct{}, 1)}
	previous, replaces := asked.Previous.(*bridge)
	if replaces {
		b.commands = previous.commands
	} else {
		previous = b
		b.commands = commands.New(s.proxy.options.Profile, s.proxy.log,
			saved.Offered && asked.Cause != backend.Fork)
	}
	b.useRelays(previous.setup, saved)
	return b, previous
}

// Prompt implements [backend.Session]: it sends the prompt to the child, also during a turn: the
// child decides what becomes of both. A child that has ended is restarted first.
func (b *bridge) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	lasting, end := extend(ctx, b.proxy.options.limits.CancelGrace)
	p := &prompt{ctx: ctx, params: params, updates: u, sent: make(chan struct{}),
		lasting: lasting, end: end}
	earlier := b.current.enqueue(p)
	work := func() (backend.Raw, error) { return b.sendAfter(earlier, p)() }
	if len(earlier) == 0 {
		if u, unpin := b.current.pin(); u != nil {
			defer b.current.dequeue(p)
			work = unpin.After(b.send(u, p))
		}
	}
	return func() (backend.Raw, error) {
		defer p.end(nil)
		b.commands.AnnounceRoots(ctx, b.host.Catalog(), u)
		return work()
	}
}

// sendAfter sends a prompt once all earlier prompts were sent and the child runs.
func (b *bridge) sendAfter(earlier []*prompt, p *prompt) backend.Work {
	defer b.current.dequeue(p)
	for _, before := range earlier {
		select {
		case <-before.sent:
		case <-p.ctx.Done():
			return cancelled
		}
	}
	u, unpin, err := b.revive(p.ctx)
	switch {
	case err != nil && p.ctx.Err() != nil:
		return cancelled
	case err != nil:
		return jsonrpc.Fail(err)
	}
	return unpin.After(b.send(u, p))
}

// send sends the prompt to the child, with the context that it needs.
func (b *bridge) send(u *childUse, p *prompt) backend.Work {
	_, saved := b.current.get()
	expanded, err := b.commands.Expand(p.ctx, b.host.Catalog(), saved.RootsMode, p.params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	var told promptContext
	if !expanded.Alone {
		told = b.nextContext(u)
	}
	work := u.session.sendPrompt(p, briefing.AppendText(expanded.Params, told.text))
	if work == nil { // cancelled while the child was started
		b.settleContext(p.lasting, told, false)
		return cancelled
	}
	return func() (backend.Raw, error) {
		if expanded.Note != "" {
			if err := p.updates.Update(p.ctx, backend.Text(expanded.Note+"\n\n")); err != nil {
				b.proxy.log.Debug("the note about a command was not sent", "error", err)
			}
		}
		b.hints.tell(p, u.child)
		result, err := work()
		b.hints.tell(p, u.child)
		b.settleContext(p.lasting, told, err == nil)
		switch {
		case err == nil:
			b.proxy.program.NoteAnswer()
		case errors.Is(err, jsonrpc.ErrQueueFull):
			u.session.removePrompt(p) // it was not sent
		case errors.Is(err, child.ErrNoAnswer):
			// Until the next turn, the child's late updates are not sent to the client.
			u.session.abandonPrompt(p)
			b.proxy.log.Warn("the agent did not end a cancelled turn in time", "error", err)
			return cancelled()
		}
		return result, err
	}
}

// nextContext returns the context for the next prompt to u.
func (b *bridge) nextContext(u *childUse) promptContext {
	_, saved := b.current.get()
	told := b.relays.Told()
	return b.current.nextContext(u, b.parts(saved), told)
}

// settleContext records whether the child has answered the prompt with told. It logs errors.
func (b *bridge) settleContext(ctx context.Context, told promptContext, answered bool) {
	if !b.current.settleContext(told, answered) {
		return
	}
	if err := b.host.SaveState(ctx, told.after.encode()); err != nil {
		b.proxy.log.Warn("cannot store which context the agent has: it will be sent again",
			"error", err)
	}
}

// Cancel implements [backend.Session]: it passes session/cancel on if the child was sent prompts
// whose turns all end. If another turn continues, it only cancels the requests of those that end.
func (b *bridge) Cancel(params backend.Raw) {
	if u := b.current.running(); u != nil {
		u.session.cancelPrompts(params)
	}
}

// Call implements [backend.Session]: it passes the request on.
func (b *bridge) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if u, unpin := b.current.pin(); u != nil {
		return unpin.After(u.session.forward(ctx, method, params))
	}
	return func() (backend.Raw, error) {
		u, unpin, err := b.revive(ctx)
		if err != nil {
			return nil, err
		}
		defer unpin()
		return u.session.forward(ctx, method, params)()
	}
}

// Notify implements [backend.Session]: it passes the notification on, unless the child has ended.
func (b *bridge) Notify(_ context.Context, method string, params backend.Raw) {
	u, unpin := b.current.pin()
	if u == nil {
		b.proxy.log.Info("dropped a notification for an agent that has ended", "method", method)
		return
	}
	defer unpin()
	u.child.Notify(method, withSessionID(params, u.session.id))
}

// Close implements [backend.Session]: it closes the child's session, unless another bridge uses it.
func (b *bridge) Close(ctx context.Context) error {
	_, err := b.CloseFor(ctx, backend.Raw(`{}`))
	return err
}

// CloseFor implements [backend.Closer].
func (b *bridge) CloseFor(ctx context.Context, params backend.Raw) (result backend.Raw, err error) {
	if u := b.current.close(); u != nil {
		result, err = u.closeFor(ctx, params)
	}
	return result, errors.Join(err, b.relays.Leave())
}

// SandboxText implements [backend.Confined].
func (b *bridge) SandboxText() string {
	u, _ := b.current.get()
	if u == nil {
		return ""
	}
	return u.child.SandboxText()
}

// revive opens the child's session again, mostly because the child has ended. It returns the use of
// the new child, which is pinned until unpin.
func (b *bridge) revive(ctx context.Context) (u *childUse, unpin child.Unpin, err error) {
	select {
	case b.reviving <- struct{}{}:
		defer func() { <-b.reviving }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if u, unpin = b.current.pin(); u != nil {
		return u, unpin, nil
	}
	before, saved := b.current.get()
	if before == nil {
		return nil, nil, errSessionClosed
	}
	if err := before.child.AwaitEnd(ctx); err != nil {
		return nil, nil, err
	}
	u, _, err = b.open(ctx, backend.Activation{Cause: backend.Resume}, b, saved)
	if err != nil {
		return nil, nil, err
	}
	u.child.Log.Info("a session was opened again in the agent")
	b.loseSubagents(ctx, before.session)
	u.session.repeatSettings(ctx, before.session)
	return u, u.unpin, nil
}

// handleUpdate passes on an update of cs. p is the prompt in whose turn it came, or nil. It drops
// updates of a turn that was answered without waiting for the child.
func (b *bridge) handleUpdate(
	ctx context.Context, cs *childSession, p *prompt, u backend.Update,
) error {
	u, ok := briefing.WithoutBlocks(u)
	profile := b.proxy.profile()
	if !ok || p == nil && isBanner(profile, u) {
		return nil
	}
	u = interpret(profile, u)
	switch cs.takeUpdate(u) {
	case discarding:
		return nil
	case replaying:
		return b.host.Replay(ctx, u)
	case live:
		if u.Kind == sessionstore.CurrentModeUpdate {
			if id := strictjson.FindText(u.Body(), "currentModeId"); id != "" {
				cs.keepSetting(protocol.SessionSetMode,
					backend.Encode(map[string]string{"modeId": id}))
			}
		}
		b.hints.noteDenial(cs.child, u)
	}
	if p != nil && u.Kind != sessionstore.SubagentUpdate { // a subagent may outlive the turn
		return b.showUpdate(ctx, p.updates, u)
	}
	return b.showUpdate(ctx, b.host, u)
}

// showUpdate shows the client an update. The commands of the roots are added to those of the child.
func (b *bridge) showUpdate(ctx context.Context, to backend.Updates, u backend.Update) error {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		return b.commands.AnnounceChild(ctx, b.host.Catalog(), to, u.Raw)
	}
	return to.Update(ctx, u)
}

// finishReplay ends the replay of cs, passes on the latest states, and returns how many updates of
// the history were passed on. Usually the response has just been read, and it runs on the read
// loop.
func (b *bridge) finishReplay(ctx context.Context, cs *childSession) (passedOn int) {
	passedOn, states := cs.endReplay()
	for _, state := range states {
		if err := b.showUpdate(ctx, b.host, state); err != nil {
			b.proxy.log.Debug("cannot pass on a state of the agent", "kind", state.Kind,
				"error", err)
		}
	}
	return passedOn
}
