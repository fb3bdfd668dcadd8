package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const worktreeUsage = "Type `/worktree NAME` to make a git worktree of each folder of this " +
	"session, on a new branch NAME, and a copy of this conversation that works there.\n"

// noRemoteWorktrees answers users of a server, where worktrees would lie outside of the directories
// that they may open.
const noRemoteWorktrees = "This server makes no worktrees, because they would lie outside of the " +
	"folders that you may open. Its operator can make them with `acp-agent worktree add`, and " +
	"allow you their directory with `acp-agent tokens set`.\n"

// offersWorktrees reports whether there is a /worktree.
func (a *agent) offersWorktrees() bool { return a.options.Worktrees.Dir != "" }

// removedWorktree returns how to make the worktrees again of which a missing folder was one, or "".
func (a *agent) removedWorktree(path string) string {
	if !a.offersWorktrees() {
		return ""
	}
	return worktree.NewRegistry(a.options.Worktrees.Records, a.options.Worktrees.Dir).Removed(path)
}

// answerWorktree answers /worktree: it makes worktrees of the session's folders, after a question,
// and copies the conversation into a session that has these folders. The present session stays as
// it is.
func (o *ownTurn) answerWorktree(c prompts.Command) error {
	name := strings.TrimSpace(c.Arguments)
	switch {
	case !o.agent.offersWorktrees():
		return o.Write(noRemoteWorktrees)
	case name == "" || strings.ContainsAny(name, " \t\n"):
		return o.Write(worktreeUsage)
	}
	return o.makeWorktrees(name)
}

// makeWorktrees makes the worktrees if the user agrees, and the copy of the session.
func (o *ownTurn) makeWorktrees(name string) error {
	options := o.agent.options.Worktrees
	folders := o.session.params.roots
	patterns := options.Copy(folders.Cwd())
	plan, err := tasks.FromDisk(o.ctx, o.agent.tasks, func() (*worktree.Plan, error) {
		return worktree.NewRegistry(options.Records, options.Dir).Plan(o.ctx, name, folders,
			worktree.Options{Copy: patterns})
	})
	if err != nil {
		return err
	}
	switch err := o.confirmWorktrees(name, plan.Describe()); {
	case errors.Is(err, backend.ErrRejected):
		return o.Write("No worktrees were made.\n")
	case err != nil:
		return err
	}
	ctx := context.WithoutCancel(o.ctx) // making them and storing the copy belong together
	made, err := tasks.FromDisk(ctx, o.agent.tasks, func() (worktree.Task, error) {
		return plan.Make(ctx)
	})
	if err != nil {
		return err
	}
	id, err := o.copySession(ctx, made)
	if err != nil {
		return o.Write(fmt.Sprintf("The worktrees %s were made, but this conversation could not be "+
			"copied: %s\n", text.Code(name), text.Plain(protocolError(err).Error())))
	}
	return o.tellWorktrees(made, id)
}

// confirmWorktrees asks whether to make the worktrees.
func (o *ownTurn) confirmWorktrees(name string, lines []string) error {
	_, err := o.ask(backend.Question{
		Call: backend.NewToolCall("worktree", sdk.ToolKindOther,
			"Make the worktrees "+text.Code(name),
			"For each folder, in order:\n\n"+text.Block("", strings.Join(lines, "\n"))),
		Once: "Make them", Reject: "Do not make them",
	})
	return err
}

// copySession stores a copy of the session, up to its last finished turn, with the worktrees as its
// folders.
func (o *ownTurn) copySession(ctx context.Context, made worktree.Task) (sessionstore.ID, error) {
	roots, err := made.Roots()
	if err != nil {
		return "", err
	}
	keys, err := tasks.FromDisk(ctx, o.agent.tasks, func() (sessionstore.Keys, error) {
		k := sessionstore.Keys{Roots: roots.Granting(func(dir workspace.Dir) workspace.Grant {
			return o.session.workspace.Roots().Grant(dir) // no worktrees are made of others
		})}
		for _, dir := range roots.All() {
			k.Real = append(k.Real, workspace.Real(dir))
		}
		return k, nil
	})
	if err != nil {
		return "", err
	}
	source, err := o.agent.sessions.Stored(ctx, o.session.id)
	if err != nil {
		return "", err
	}
	n := backend.NewCopy(source, "worktree "+made.Name)
	n.Keys = keys
	_, err = o.agent.options.Store.Fork(ctx, source.ID, n)
	return n.ID, err
}

// tellWorktrees says what was made, and how to go on there.
func (o *ownTurn) tellWorktrees(made worktree.Task, id sessionstore.ID) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Made the worktrees %s. This session keeps its folders; its copy %s works in "+
		"these:\n\n", text.Code(made.Name), text.Code(string(id)))
	editor := ""
	for _, f := range made.Folders {
		shared := ""
		if f.Shared {
			shared = " (shared)"
		}
		fmt.Fprintf(&b, "- %s%s\n", text.Code(text.Printable(f.Path)), shared)
		editor += " " + text.ShellWord(f.Path)
	}
	fmt.Fprintf(&b, "\nTo go on there, open these folders in your editor and load the copy, or "+
		"run one of\n\n%s", text.Block("sh",
		"zed"+editor+"\ncode"+editor+"\nacp-agent run --resume "+string(id)+" PROMPT"))
	b.WriteString("\n`acp-agent worktree list` shows how to merge the branches, and `worktree " +
		"remove` removes what has nothing to lose.\n")
	return o.Write(b.String())
}
