package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

func newWorktree(set *settings) *cobra.Command {
	return commandGroup("worktree", newWorktreeAdd(set), newWorktreeList(set),
		newWorktreeCommit(set), newWorktreeRemove(set))
}

func newWorktreeAdd(set *settings) *cobra.Command {
	r := rootFlags{cwd: "."}
	var o worktree.Options
	return set.newCommand("add", takes(1, 1, "one NAME", ", such as fix-login"), needsState,
		flags{"cwd": &r.cwd, "dir": &r.dirs, "existing": &o.Existing},
		func(cmd *cobra.Command, args []string) error {
			made, err := makeWorktrees(cmd.Context(), set, args[0], r, o)
			if err != nil {
				return err
			}
			return printWorktrees(set.streams, made)
		})
}

// makeWorktrees makes worktrees of the folders that the flags name, and says what they lack.
func makeWorktrees(
	ctx context.Context, set *settings, name string, r rootFlags, o worktree.Options,
) (worktree.Task, error) {
	roots, _, err := set.sessionRoots(r)
	if err != nil {
		return worktree.Task{}, err
	}
	o.Copy = set.copiedFiles(roots.Cwd())
	plan, err := set.worktrees().Plan(ctx, name, roots, o)
	if err != nil {
		return worktree.Task{}, err
	}
	for _, line := range plan.Describe() {
		set.note("%s", line)
	}
	return plan.Make(ctx)
}

// printWorktrees prints the folders, and how to open them.
func printWorktrees(s streams, made worktree.Task) error {
	run, editor := "acp-agent run", ""
	for i, f := range made.Folders {
		flag := " --dir "
		if i == 0 {
			flag = " --cwd "
		}
		run += flag + text.ShellWord(f.Path)
		editor += " " + text.ShellWord(f.Path)
		if _, err := fmt.Fprintln(s.out, text.Printable(f.Path)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(s.err,
		"acp-agent: open them with one of\n  %s PROMPT\n  zed%s\n  code%[2]s\n", run, editor)
	return err
}

// repositoryReport is a worktree with how far the work in it is.
type repositoryReport struct {
	*worktree.Repository
	Status worktree.Status `json:"status"`
}

// taskReport describes the worktrees of a task.
type taskReport struct {
	worktree.Task
	Repositories []repositoryReport `json:"repositories"`
}

func reportTask(ctx context.Context, task worktree.Task) taskReport {
	report := taskReport{Task: task, Repositories: []repositoryReport{}}
	for _, r := range task.Repositories {
		report.Repositories = append(report.Repositories, repositoryReport{r, r.Status(ctx)})
	}
	return report
}

// merges returns the commands that merge the branches.
func (t taskReport) merges() (commands []string) {
	for _, r := range t.Repositories {
		if command := r.Merge(r.Status); command != "" {
			commands = append(commands, command)
		}
	}
	return commands
}

// printMerges prints the commands that merge branches, if there are any.
func printMerges(out io.Writer, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "To merge their branches:\n  %s\n",
		strings.Join(commands, "\n  "))
	return err
}

func newWorktreeList(set *settings) *cobra.Command {
	return set.newCommand("list", noArgs, needsState, flags{"json": &set.json},
		func(cmd *cobra.Command, _ []string) error {
			var failed error
			all := []taskReport{}
			for task, err := range set.worktrees().All() {
				failed = cmp.Or(failed, err)
				if err == nil {
					all = append(all, reportTask(cmd.Context(), task.Follow()))
				}
			}
			slices.SortFunc(all, func(a, b taskReport) int { return cmp.Compare(a.Name, b.Name) })
			if failed != nil && len(all) == 0 {
				return failed
			}
			err := set.print(all, func() error { return printTasks(set, all) })
			return cmp.Or(err, failed)
		})
}

func printTasks(set *settings, all []taskReport) error {
	if len(all) == 0 {
		set.note("there are no worktrees; acp-agent worktree add NAME makes them")
		return nil
	}
	table := terminal.NewTable(set.out, "NAME", "FOLDER", "STATE")
	var merges []string
	for _, task := range all {
		for _, r := range task.Repositories {
			state := r.Status.String()
			if lacks := cmp.Or(string(task.State), r.Missing()); lacks != "" {
				state = lacks + ": run acp-agent worktree remove"
			}
			table.Row(text.Printable(task.Name), text.Printable(r.Path), state)
		}
		for _, f := range task.Folders {
			if f.Shared {
				table.Row(text.Printable(task.Name), text.Printable(f.Path), "shared")
			}
		}
		merges = append(merges, task.merges()...)
	}
	return cmp.Or(table.Print(), printMerges(set.out, merges))
}

// takesWorktree accepts the name of worktrees.
func takesWorktree() cobra.PositionalArgs {
	return takes(1, 1, "one NAME", "; acp-agent worktree list shows them")
}

func newWorktreeCommit(set *settings) *cobra.Command {
	var message string
	return set.newCommand("commit", takesWorktree(), needsState,
		flags{"message,m": verbatim(&message)},
		func(cmd *cobra.Command, args []string) error {
			if message == "" {
				return usage.Errorf("worktree commit needs a message: -m TEXT")
			}
			task, err := set.worktrees().Find(args[0])
			if err != nil {
				return err
			}
			made, err := task.Commit(cmd.Context(), message)
			if errors.Is(err, worktree.ErrNothing) {
				set.note("%v", err)
				return nil
			}
			if err != nil {
				return err
			}
			said := ""
			for _, r := range made {
				said += "committed in " + text.Printable(r.Path) + "\n"
			}
			for _, r := range made {
				if push := r.Push(cmd.Context()); push != "" {
					said += "to push it: " + push + "\n"
				}
			}
			_, err = io.WriteString(set.out, said)
			return err
		})
}

func newWorktreeRemove(set *settings) *cobra.Command {
	return set.newCommand("remove", takesWorktree(), needsState, nil,
		func(cmd *cobra.Command, args []string) error {
			task, err := set.worktrees().Find(args[0])
			if err != nil {
				return err
			}
			merges := reportTask(cmd.Context(), task).merges()
			removed, err := set.worktrees().Remove(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if removed.State == worktree.HalfMade {
				return terminal.Say(set.out, "removed what was made of the worktrees %s, with its "+
					"branches", text.Printable(removed.Name))
			}
			_, err = fmt.Fprintf(set.out, "removed the worktrees %s\n", text.Printable(removed.Name))
			return cmp.Or(err, printMerges(set.out, merges))
		})
}

// enterWorktrees makes the worktrees of a name, unless they were made before for the same folders,
// and returns their folders.
func enterWorktrees(
	ctx context.Context, set *settings, name string, r rootFlags,
) (workspace.Roots, error) {
	made, err := set.worktrees().Find(name)
	if errors.Is(err, worktree.ErrNone) {
		made, err = makeWorktrees(ctx, set, name, r, worktree.Options{})
	} else if err == nil {
		err = checkWorktrees(set, made, r)
	}
	if err != nil {
		return workspace.Roots{}, err
	}
	return made.Roots()
}

// checkWorktrees checks that worktrees were made for the folders that the flags name, and are still
// there.
func checkWorktrees(set *settings, made worktree.Task, r rootFlags) error {
	folders, _, err := set.sessionRoots(r)
	if err != nil {
		return err
	}
	if !made.IsFor(folders) {
		var originals []string
		for _, f := range made.Folders {
			originals = append(originals, text.Printable(f.Original))
		}
		return usage.Errorf("--worktree: the worktrees %s are those of %s: use another name",
			text.Printable(made.Name), strings.Join(originals, ", "))
	}
	return made.Incomplete()
}
