package commands

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

// answerWorktree answers /worktree: it makes worktrees of the session's folders, after a question,
// and copies the conversation into a session that has these folders. The present session stays as
// it is.
func (t *turn) answerWorktree(c prompts.Command) error {
	name := strings.TrimSpace(c.Arguments)
	switch {
	case t.Worktrees == nil:
		return t.Write(noRemoteWorktrees)
	case name == "" || strings.ContainsAny(name, " \t\n"):
		return t.Write(worktreeUsage)
	}
	return t.makeWorktrees(name)
}

// makeWorktrees makes the worktrees if the user agrees, and the copy of the session.
func (t *turn) makeWorktrees(name string) error {
	folders := t.roots().Roots()
	patterns := t.Copy(folders.Cwd())
	plan, err := tasks.FromDisk(t.ctx, t.Tasks, func() (*worktree.Plan, error) {
		return t.Worktrees.Plan(t.ctx, name, folders, worktree.Options{Copy: patterns})
	})
	if err != nil {
		return err
	}
	_, err = t.ask(backend.Question{
		Call: backend.NewToolCall("worktree", sdk.ToolKindOther,
			"Make the worktrees "+text.Code(name),
			"For each folder, in order:\n\n"+text.Block("", strings.Join(plan.Describe(), "\n"))),
		Once: "Make them", Reject: "Do not make them",
	})
	switch {
	case errors.Is(err, backend.ErrRejected):
		return t.Write("No worktrees were made.\n")
	case err != nil:
		return err
	}
	ctx := context.WithoutCancel(t.ctx) // making them and storing the copy belong together
	made, err := tasks.FromDisk(ctx, t.Tasks, func() (worktree.Task, error) {
		return plan.Make(ctx)
	})
	if err != nil {
		return err
	}
	id, err := t.copySession(ctx, made)
	if err != nil {
		return t.Write(fmt.Sprintf("The worktrees %s were made, but this conversation could not be "+
			"copied: %s\n", text.Code(name), text.Plain(err.Error())))
	}
	return t.tellWorktrees(made, id)
}

// copySession stores a copy of the session, up to its last finished turn, with the worktrees as its
// folders.
func (t *turn) copySession(ctx context.Context, made worktree.Task) (sessionstore.ID, error) {
	roots, err := made.Roots()
	if err != nil {
		return "", err
	}
	before := t.roots().Roots()
	keys := sessionstore.Keys{Roots: roots.Granting(before.Grant)} // the read-only ones are shared
	for _, dir := range roots.All() {
		keys.Real = append(keys.Real, workspace.Real(dir))
	}
	source, err := t.Store.Get(ctx, t.id)
	if err != nil {
		return "", err
	}
	n := backend.NewCopy(source, "worktree "+made.Name)
	n.Keys = keys
	_, err = t.Store.Fork(ctx, t.id, n)
	return n.ID, err
}

// tellWorktrees says what was made, and how to go on there.
func (t *turn) tellWorktrees(made worktree.Task, id sessionstore.ID) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Made the worktrees %s. This session keeps its folders; its copy %s works in "+
		"these:\n\n", text.Code(made.Name), text.Code(string(id)))
	editor := ""
	for _, f := range made.Folders {
		shared := ""
		if f.Shared {
			shared = " (shared)"
		}
		fmt.Fprintf(&b, "- %s%s\n", text.Code(f.Path), shared)
		editor += " " + text.ShellWord(f.Path)
	}
	fmt.Fprintf(&b, "\nTo go on there, open these folders in your editor and load the copy, or "+
		"run one of\n\n%s", text.Block("sh",
		"zed"+editor+"\ncode"+editor+"\nacp-agent run --resume "+string(id)+" PROMPT"))
	b.WriteString("\n`acp-agent worktree list` shows how to merge the branches, and `worktree " +
		"remove` removes what has nothing to lose.\n")
	return t.Write(b.String())
}
