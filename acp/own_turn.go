package acp

import (
	"context"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/acp/internal/folders"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/servers/found"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// ownCommand returns the command in the params of a prompt if the adapter answers it, not the
// backend.
func (s *session) ownCommand(params backend.Raw) (prompts.Command, bool) {
	command, ok := commands.Parse(params)
	if command.Name == backend.WorktreeCommand {
		ok = ok && (s.adapter.options.Worktrees.Dir != "" || s.adapter.connection.peer.Remote)
	}
	return command, ok && !s.transcript.AgentHasCommand(command.Name)
}

// ownTurn is a turn in which the adapter answers a command itself, whatever backend a session has.
// It implements [commands.Session].
type ownTurn struct {
	session *session // the active one
	updates *turnUpdates
}

// run answers a command of the adapter.
func (o *ownTurn) run(ctx context.Context, c prompts.Command) (backend.Raw, error) {
	a := o.session.adapter
	info := a.info()
	options := commands.Options{Store: a.options.Store, Consents: a.consents(),
		Snapshots: a.snapshots(), Worktrees: a.options.Worktrees.registry(),
		Copy: a.options.Worktrees.Copy, Workspace: a.options.Workspace,
		Client: a.connection.clientCapabilities().name, PassesOn: info.ConnectsServers,
		Remote: a.connection.peer.Remote, Tasks: a.tasks}
	if info.NeverAsks {
		options.Unruled = whyUnruled(info.Info)
	}
	return commands.Answer(ctx, c, o, o.session.storeID, o.updates, options)
}

// Host implements [commands.Session].
func (o *ownTurn) Host() backend.Host { return o.session.host }

// Sandbox implements [commands.Session].
func (o *ownTurn) Sandbox() (said string) {
	if mode := o.session.adapter.info().Sandbox; mode != "" {
		said = fmt.Sprintf("Sandbox of the agent: %s\n\n", mode)
	}
	if confined, ok := o.session.backend.(backend.Confined); ok {
		said += confined.SandboxText()
	}
	return said
}

// Permits implements [commands.Session].
func (o *ownTurn) Permits() *permission.Permits { return o.session.access.Permits }

// Folders implements [commands.Session].
func (o *ownTurn) Folders() folders.Set { return o.session.params.folders }

// Declared implements [commands.Session].
func (o *ownTurn) Declared(ctx context.Context, dir workspace.Dir) string {
	if o.session.adapter.options.KeepFolders {
		return ""
	}
	declared, _ := tasks.FromDisk(ctx, o.session.adapter.tasks, func() ([]folders.Declared, error) {
		return o.session.adapter.declaredFolders(o.session.params.folders.Cwd(), o.session.storeID)
	})
	return folders.SettingOf(declared, dir)
}

// ChangeFolders implements [commands.Session].
func (o *ownTurn) ChangeFolders(ctx context.Context, set folders.Set) error {
	return o.reopen(ctx, o.session.params.withFolders(set))
}

// StartServer implements [commands.Session]. The user is not asked if they have allowed the server
// permanently. It takes the place of one that was found under the same name.
func (o *ownTurn) StartServer(ctx context.Context, artifact discovery.Artifact) error {
	w := o.session.host.Workspace()
	server, err := found.New(artifact, w.Checked(permission.Confirmed)) // they are asked below
	if err != nil {
		return err
	}
	c := server.Config
	if why := o.session.adapter.info().transports.refusal(c.Name, c.Transport); why != "" {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", why)
	}
	if err := o.session.adapter.applyPolicy(&server.Start); err != nil {
		return err
	}
	// It is not about the agent, so it is not recorded.
	user := o.session.host.For(backend.Sender{Decided: true})
	start, err := server.Ask(ctx, user, o.session.adapter.consents(), w)
	if err != nil {
		return err
	}
	if err := server.CheckDir(w); err != nil { // the user may have taken a while
		return err
	}
	isOld := func(c mcpclient.Config) bool { return c.Name == start.Name }
	return o.reopen(ctx, o.session.params.withFound(isOld, start))
}

// reopen opens the session with other params, in place of the active one. Requests that arrive in
// that time wait. If it fails, the session stays as it is.
func (o *ownTurn) reopen(ctx context.Context, p sessionParams) error {
	a := o.session.adapter
	ticket := a.home.queues.Ticket(o.session.id, turns.Ordinary, nil)
	defer ticket.Release()
	if err := ticket.Acquire(ctx); err != nil {
		return err
	}
	stored, err := a.sessions.Stored(ctx, o.session.id)
	if err != nil {
		return err
	}
	s, news, err := o.session.reopenForAll(ctx, ticket, listing.Openable{Session: stored}, p)
	if err != nil {
		return err
	}
	o.session = s
	o.updates.moveTo(s)
	for _, u := range news { // even if the turn has been cancelled
		if err := o.updates.Update(a.base, u); err != nil {
			a.log.Debug("update not sent", "session", s.id, "error", err)
		}
	}
	return nil
}
