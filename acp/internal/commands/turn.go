// Package commands answers the adapter's slash commands without a model, for any backend.
//
// [Answer] answers one, in a file per command; what it needs of its session is [Session].
// [Announce] adds the commands to those that a backend announces. What an answer looks like is
// decided here too, once for all commands: [Reply] sends text as whole Markdown and shows tool
// calls, [Root] is a root under the label that answers use for it.
package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/folders"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Session is what the commands need of the session in which the user typed one. The last two
// methods open it again, and from then on all methods are about the session that has replaced it.
type Session interface {
	// Host returns the host of the session as it is open now.
	Host() backend.Host
	// Permits returns the user's rules, and what they have allowed before.
	Permits() *permission.Permits
	// Sandbox says in Markdown how the session's agent is restricted, "" if it never is.
	Sandbox() string
	// Folders returns the folders of the session.
	Folders() folders.Set
	// Declared returns the setting that gives a folder to the session when a client that names no
	// roots opens it, or "".
	Declared(ctx context.Context, dir workspace.Dir) string
	// ChangeFolders gives the session other folders.
	ChangeFolders(ctx context.Context, set folders.Set) error
	// StartServer adds an MCP server that was found in a root, if the user allows that.
	StartServer(ctx context.Context, found discovery.Artifact) error
}

// Options are what the commands use in all sessions of an agent.
type Options struct {
	Store     sessionstore.Store
	Consents  *consent.Store
	Snapshots worktree.Snapshots
	Worktrees *worktree.Registry // nil if none are made
	// Copy returns patterns for the ignored files that worktrees of a session in cwd get.
	Copy      func(cwd workspace.Dir) []string
	Workspace workspace.Options
	// Unruled says what rules are worth for an agent that never asks, "" for any other.
	Unruled  string
	Client   string // the name of the client, for users
	PassesOn bool   // the agent connects the MCP servers
	Remote   bool   // the user is on another machine
	Tasks    *tasks.Group
}

// turn is a turn in which the adapter answers a command itself, whatever backend a session has.
type turn struct {
	*Reply
	Options
	session Session
	id      sessionstore.ID // of the session in the store
}

// roots returns the roots of the session as they are now.
func (t *turn) roots() *workspace.Workspace { return t.session.Host().Workspace() }

// Parse returns the command in the params of a prompt if it is one of the adapter's.
func Parse(params backend.Raw) (prompts.Command, bool) {
	typed := prompts.ParseCommand(params)
	return typed, slices.Contains(backend.AdapterCommands(), typed.Name)
}

// answerOf is the table of the adapter's commands. answer answers one, and failed precedes an error
// that the user is told, for example to say that nothing has changed.
func answerOf(name string) (answer func(*turn, prompts.Command) error, failed string) {
	switch name {
	case backend.RootsCommand:
		return (*turn).answerRoots, "The folders of this session were not changed: "
	case backend.DiffCommand, backend.OtherName(backend.DiffCommand):
		return (*turn).answerDiff, "The changes cannot be shown: "
	case backend.WorktreeCommand:
		return (*turn).answerWorktree, "No worktrees were made: "
	case backend.ForkCommand, backend.OtherName(backend.ForkCommand):
		return (*turn).answerFork, "No copy was made: "
	case backend.PermissionsCommand, backend.OtherName(backend.PermissionsCommand):
		return (*turn).answerPermissions, "The rules cannot be shown or changed: "
	case backend.MCPCommand, backend.OtherName(backend.MCPCommand):
		return (*turn).answerMCP, "This did not work: "
	}
	panic("not a command of the adapter: " + name)
}

// Answer answers a command for which Parse reports true, in the session s, which has the given id
// in the store. An error that the user can correct is part of the answer.
func Answer(
	ctx context.Context, c prompts.Command, s Session, id sessionstore.ID, u backend.Updates,
	o Options,
) (backend.Raw, error) {
	t := &turn{Reply: NewReply(ctx, u, MaxBytes), Options: o, session: s, id: id}
	answer, failed := answerOf(c.Name)
	err := answer(t, c)
	// The client may have cancelled a question.
	if err != nil && ctx.Err() == nil && !errors.Is(err, backend.ErrCancelled) {
		err = t.Refuse(failed + text.Plain(err.Error()) + "\n")
	}
	return t.Finish(err)
}

// ask asks the user a question, and shows its tool call.
func (t *turn) ask(q backend.Question) (backend.Answer, error) {
	if err := t.Flush(); err != nil {
		return backend.Answer{}, err
	}
	return backend.AskShown(t.ctx, t.session.Host(), t.Updates, q)
}
