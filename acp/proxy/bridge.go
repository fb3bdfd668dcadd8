package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// bridge connects an activation to a session of a child. It implements [backend.Session], and lives
// from Open to Close. It has no lock: what changes is in parts that have their own.
type bridge struct {
	*activation
	servers  *servers
	commands *commands
	current  current
	hints    hints
	reviving chan struct{} // a semaphore, held while the child is restarted for the session
}

// newBridge returns the bridge of an activation, which has the relays and commands of the one that
// it replaces, if there is one. saved is the state to continue or, for a fork, to copy.
func newBridge(a *activation, previous *bridge, saved state, cause backend.Cause) *bridge {
	commands := newCommands(a.proxy, saved.Offered && cause != backend.Fork)
	if previous != nil {
		commands = previous.commands
	}
	return &bridge{activation: a, servers: newServers(a, previous, saved), commands: commands,
		reviving: make(chan struct{}, 1)}
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
		if cs, unpin := b.current.pin(); cs != nil {
			defer b.current.dequeue(p)
			work = unpinAfter(b.send(cs, p), unpin)
		}
	}
	return func() (backend.Raw, error) {
		defer p.end(nil)
		b.commands.announceRoots(ctx, b.host.Catalog(), u)
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
	cs, unpin, err := b.revive(p.ctx)
	switch {
	case err != nil && p.ctx.Err() != nil:
		return cancelled
	case err != nil:
		return jsonrpc.Fail(err)
	}
	return unpinAfter(b.send(cs, p), unpin)
}

// send sends the prompt to the child, with the context that it needs.
func (b *bridge) send(cs *childSession, p *prompt) backend.Work {
	expanded, err := b.expandPrompt(p.ctx, p.params)
	if err != nil {
		return jsonrpc.Fail(err)
	}
	var told promptContext
	if !expanded.alone {
		told = b.nextContext(cs)
	}
	work := cs.sendPrompt(p, appendText(expanded.params, told.text))
	if work == nil { // cancelled while the child was started
		b.settleContext(p.lasting, told, false)
		return cancelled
	}
	return func() (backend.Raw, error) {
		if expanded.note != "" {
			if err := p.updates.Update(p.ctx, backend.Text(expanded.note+"\n\n")); err != nil {
				b.proxy.log.Debug("the note about a command was not sent", "error", err)
			}
		}
		b.hints.tell(p, cs.child)
		result, err := work()
		b.hints.tell(p, cs.child)
		b.settleContext(p.lasting, told, err == nil)
		switch {
		case err == nil:
			b.proxy.children.failures.Store(0)
		case errors.Is(err, jsonrpc.ErrQueueFull):
			cs.removePrompt(p) // it was not sent
		case errors.Is(err, errNoAnswer):
			// Until the next turn, the child's late updates are not sent to the client.
			cs.abandonPrompt(p)
			b.proxy.log.Warn("the agent did not end a cancelled turn in time", "error", err)
			return cancelled()
		}
		return result, err
	}
}

// nextContext returns the context for the next prompt in cs.
func (b *bridge) nextContext(cs *childSession) promptContext {
	_, saved := b.current.get()
	told := b.servers.relays.toldParts()
	return b.current.nextContext(cs, b.contextParts(saved, b.servers.tool(saved)), told)
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

// expandPrompt adds the text of a command of the roots to a prompt that calls it.
func (b *bridge) expandPrompt(ctx context.Context, params backend.Raw) (expandedPrompt, error) {
	c := prompts.ParseCommand(params)
	if c.Name == "" {
		return expandedPrompt{params: params}, nil
	}
	catalog := b.host.Catalog()
	_, saved := b.current.get()
	offered, taken := b.commands.ofRoots(catalog)
	at := slices.IndexFunc(offered, func(command discovery.SlashCommand) bool {
		return command.Name == c.Name
	})
	var used *discovery.Artifact // nil for a command of the child, or a path
	note := ""
	if at >= 0 {
		used = &offered[at].Artifact
		var err error
		if params, note, err = expand(ctx, catalog, params, c, *used); err != nil {
			return expandedPrompt{}, err
		}
	}
	conflicts := b.commands.conflicts(catalog, saved.RootsMode, c.Name, used, taken)
	recognized := b.proxy.options.Profile.Context.AfterCommands &&
		!slices.Contains(profiles.CommonCommands(), c.Name)
	return expandedPrompt{params: params, note: strings.TrimSpace(note + "\n\n" + conflicts),
		alone: used == nil && !strings.Contains(c.Name, "/") && !recognized}, nil
}

// Cancel implements [backend.Session]: it passes session/cancel on if the child was sent prompts
// whose turns all end. If another turn continues, it only cancels the requests of those that end.
func (b *bridge) Cancel(params backend.Raw) {
	if cs := b.running(); cs != nil {
		cs.cancelPrompts(params)
	}
}

// Call implements [backend.Session]: it passes the request on.
func (b *bridge) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if cs, unpin := b.current.pin(); cs != nil {
		return unpinAfter(cs.forward(ctx, method, params), unpin)
	}
	return func() (backend.Raw, error) {
		cs, unpin, err := b.revive(ctx)
		if err != nil {
			return nil, err
		}
		defer unpin()
		return cs.forward(ctx, method, params)()
	}
}

// Notify implements [backend.Session]: it passes the notification on, unless the child has ended.
func (b *bridge) Notify(_ context.Context, method string, params backend.Raw) {
	cs, unpin := b.current.pin()
	if cs == nil {
		b.proxy.log.Info("dropped a notification for an agent that has ended", "method", method)
		return
	}
	defer unpin()
	cs.child.notify(method, withSessionID(params, cs.id))
}

// Close implements [backend.Session]: it closes the child's session, unless another activation uses
// it.
func (b *bridge) Close(ctx context.Context) error {
	_, err := b.CloseFor(ctx, backend.Raw(`{}`))
	return err
}

// CloseFor implements [backend.Closer].
func (b *bridge) CloseFor(ctx context.Context, params backend.Raw) (result backend.Raw, err error) {
	if cs := b.current.close(); cs != nil {
		result, err = cs.leave(ctx, b, params)
	}
	return result, errors.Join(err, b.servers.relays.leave(b.servers))
}

// running returns the current child session, or nil if the child is not running or must open it
// again. b may be nil.
func (b *bridge) running() *childSession {
	if b == nil {
		return nil
	}
	return b.current.running()
}

// SandboxText implements [backend.Confined].
func (b *bridge) SandboxText() string {
	cs, _ := b.current.get()
	if cs == nil {
		return ""
	}
	return cs.child.sandbox.Describe()
}

// revive opens the child's session again, mostly because the child has ended. It returns the
// session in the new child, which is pinned until unpin.
func (b *bridge) revive(ctx context.Context) (cs *childSession, unpin func(), err error) {
	select {
	case b.reviving <- struct{}{}:
		defer func() { <-b.reviving }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if cs, unpin = b.current.pin(); cs != nil {
		return cs, unpin, nil
	}
	before, saved := b.current.get()
	if before == nil {
		return nil, nil, errSessionClosed
	}
	if err := before.child.awaitEnd(ctx); err != nil {
		return nil, nil, err
	}
	cs, unpin, _, err = b.open(ctx, backend.Activation{Cause: backend.Resume}, saved)
	if err != nil {
		return nil, nil, err
	}
	b.proxy.log.Info("a session was opened again in the agent", "child", cs.child.process.Name())
	b.loseSubagents(ctx, before)
	cs.repeatSettings(ctx, before)
	return cs, unpin, nil
}

// handleUpdate passes on an update of cs. p is the prompt in whose turn it came, or nil. It drops
// updates of a turn that was answered without waiting for the child.
func (b *bridge) handleUpdate(
	ctx context.Context, cs *childSession, p *prompt, u backend.Update,
) error {
	u, ok := withoutContext(u)
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
		id := strictjson.FindText(u.Raw, "update", "currentModeId")
		if id != "" && u.Kind == sessionstore.CurrentModeUpdate {
			cs.keepSetting(protocol.SessionSetMode,
				backend.Encode(map[string]string{"modeId": id}))
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
		return b.commands.announceChild(ctx, b.host.Catalog(), to, u.Raw)
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
