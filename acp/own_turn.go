package acp

import (
	"context"
	"errors"
	"slices"

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
	if command.Name == backend.WorktreeCommand {
		ok = ok && (s.agent.offersWorktrees() || s.agent.remote)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return command, ok && !slices.Contains(s.state.agentHas, command.Name)
}

// ownTurn is a turn in which the adapter answers a command itself, whatever backend a session has.
type ownTurn struct {
	*commands.Reply
	ctx     context.Context // of the turn
	agent   *agent
	session *session // the active one
	updates *turnUpdates
}

// answerOf is the table of the adapter's commands. answer answers one, and failed precedes an error
// that the user is told, for example to say that nothing has changed.
func answerOf(name string) (answer func(*ownTurn, prompts.Command) error, failed string) {
	switch name {
	case backend.RootsCommand:
		return (*ownTurn).answerRoots, "The folders of this session were not changed: "
	case backend.DiffCommand, backend.OtherName(backend.DiffCommand):
		return (*ownTurn).answerDiff, "The changes cannot be shown: "
	case backend.WorktreeCommand:
		return (*ownTurn).answerWorktree, "No worktrees were made: "
	case backend.ForkCommand, backend.OtherName(backend.ForkCommand):
		return (*ownTurn).answerFork, "No copy was made: "
	case backend.PermissionsCommand, backend.OtherName(backend.PermissionsCommand):
		return (*ownTurn).answerPermissions, "The rules cannot be shown or changed: "
	}
	return (*ownTurn).answerMCP, "This did not work: "
}

// answerOwn answers a command of the adapter in s. An error that the user can correct is part of
// the answer.
func (p *prompted) answerOwn(s *session, c prompts.Command) (backend.Raw, error) {
	ctx := p.Context()
	o := &ownTurn{commands.NewReply(ctx, p.updates, commands.MaxBytes), ctx, s.agent, s, p.updates}
	answer, failed := answerOf(c.Name)
	err := answer(o, c)
	// The client may have cancelled a question.
	if err != nil && ctx.Err() == nil && !errors.Is(err, backend.ErrCancelled) {
		err = o.Refuse(failed + text.Plain(protocolError(err).Error()) + "\n")
	}
	return o.Finish(err)
}

// ask asks the user a question, and shows its tool call.
func (o *ownTurn) ask(q backend.Question) (backend.Answer, error) {
	if err := o.Flush(); err != nil {
		return backend.Answer{}, err
	}
	return backend.AskShown(o.ctx, o.session, o.updates, q)
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
	o := &opening{agent: s.agent, cause: backend.Resume, address: s.address, params: p,
		source: stored, at: at, previous: s}
	if next, err = o.run(ctx); err != nil {
		return nil, nil, err
	}
	shown := next.gate.Kinds()
	next.release(context.WithoutCancel(ctx))
	if o.notice != "" {
		news = append(news, backend.Warning(backend.Text(o.notice)))
	}
	for _, u := range statesIn(next.opened.Result) {
		if !shown[u.Kind] {
			news = append(news, u)
		}
	}
	return next, news, nil
}
