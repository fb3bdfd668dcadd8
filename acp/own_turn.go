package acp

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// parseOwnCommand returns the command in the params of a prompt if it is one of the adapter's.
func parseOwnCommand(params backend.Raw) (prompts.Command, bool) {
	typed := prompts.ParseCommand(params)
	return typed, slices.Contains(backend.AdapterCommands(), typed.Name)
}

// ownCommand returns the command in the params of a prompt if the adapter answers it, not the
// backend.
func (s *session) ownCommand(params backend.Raw) (prompts.Command, bool) {
	command, ok := parseOwnCommand(params)
	switch command.Name {
	case backend.MCPCommand:
		ok = ok && !s.agent.info().AnswersMCPCommand
	case backend.WorktreeCommand:
		ok = ok && (s.agent.offersWorktrees() || s.agent.remote)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return command, ok && !slices.Contains(s.agentHas, command.Name)
}

// ownTurn is a turn in which the adapter answers a command itself.
type ownTurn struct {
	ctx     context.Context // the turn's
	agent   *agent
	session *session // the active one
	updates *turnUpdates
}

// answerOwn answers a command of the adapter.
func (s *session) answerOwn(
	t *turns.Turn, updates *turnUpdates, c prompts.Command,
) (backend.Raw, error) {
	own := &ownTurn{ctx: t.Context(), agent: s.agent, session: s, updates: updates}
	switch c.Name {
	case backend.RootsCommand:
		return own.answerRoots(c)
	case backend.DiffCommand, backend.OtherName(backend.DiffCommand):
		return own.answerDiff()
	case backend.WorktreeCommand:
		return own.answerWorktree(strings.TrimSpace(c.Arguments))
	case backend.ForkCommand, backend.OtherName(backend.ForkCommand):
		return own.answerFork(c.Name, strings.TrimSpace(c.Arguments))
	case backend.PermissionsCommand, backend.OtherName(backend.PermissionsCommand):
		return own.answerPermissions(c)
	}
	m := commands.NewMCP(t.Context(), c.Name, &commandHost{own.session, own}, updates)
	return m.Finish(t.Context(), m.Answer(t.Context(), c.Arguments))
}

// end ends the turn with what became of a change. An error that the user can correct is part of the
// answer, after a sentence that says what stays.
func (o *ownTurn) end(err error, stays string) (backend.Raw, error) {
	switch {
	case err == nil:
		return backend.Stopped(sdk.StopReasonEndTurn), nil
	case o.ctx.Err() != nil:
		return nil, context.Cause(o.ctx)
	case errors.Is(err, backend.ErrCancelled): // the client cancelled the question
		return backend.Stopped(sdk.StopReasonCancelled), nil
	}
	why := text.Plain(protocolError(err).Error())
	return backend.FailedTurn(), o.say(stays + why + "\n")
}

func (o *ownTurn) say(markdown string) error {
	return o.updates.Update(o.ctx, backend.Text(markdown))
}

// reopen opens the session with other params, in place of the active one. Requests that arrive in
// that time wait. If it fails, the session stays as it is.
func (o *ownTurn) reopen(p sessionParams) error {
	a := o.agent
	at := a.home.queues.Ticket(o.session.id, turns.Ordinary, nil)
	defer at.Release()
	if err := at.Acquire(o.ctx); err != nil {
		return err
	}
	stored, err := a.sessions.Stored(o.ctx, o.session.id)
	if err != nil {
		return err
	}
	s, news, err := o.session.reopen(o.ctx, at, listing.Openable{Session: stored}, p)
	if err != nil {
		return err
	}
	o.session = s
	o.updates.moveTo(s)
	ctx := context.WithoutCancel(o.ctx) // even if the turn has been cancelled
	for _, u := range news {
		if err := o.updates.Update(ctx, u); err != nil {
			a.log.Debug("update not sent", "session", s.id, "error", err)
		}
	}
	return nil
}

// reopen opens the session again with other params, for the viewers that it has. It returns what
// they should be told.
func (s *session) reopen(
	ctx context.Context, at *ticket, stored listing.Openable, p sessionParams,
) (next *session, news []backend.Update, err error) {
	p.id = s.id
	r := &replacement{agent: s.agent, at: at, cause: backend.Resume, params: p, stored: stored,
		previous: s, endTurns: func(context.Context) error { return nil }}
	if next, err = r.replace(ctx, openOptions{viewers: s.viewers}); err != nil {
		return nil, nil, err
	}
	shown := next.gate.Kinds()
	next.release(context.WithoutCancel(ctx))
	if r.notice != "" {
		news = append(news, backend.Warning(backend.Text(r.notice)))
	}
	for _, u := range statesIn(next.opened.Result) {
		if !shown[u.Kind] {
			news = append(news, u)
		}
	}
	return next, news, nil
}
