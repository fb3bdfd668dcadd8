package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
)

// newDiff returns the command that shows what was done in worktrees.
func newDiff(set *settings) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:   "diff NAME [--patch | --json]",
		Short: "Show what was changed in all worktrees of a task",
		Args:  takes(1, 1, "one NAME", "; acp-agent worktree list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "patch", "json"); err != nil {
				return err
			}
			task, err := set.worktrees().Find(args[0])
			if err != nil {
				return err
			}
			if patch {
				return set.printPatches(cmd.Context(), task)
			}
			return set.printChanges(cmd.Context(), task)
		},
	}
	cmd.Flags().BoolVar(&patch, "patch", false, "print the changes, as git diff does")
	set.accept(cmd, "state-dir", "json")
	return cmd
}

// folderChanges are the files that differ in a worktree.
type folderChanges struct {
	Folder string                `json:"folder"`
	Files  []worktree.FileChange `json:"files"`
}

func (set *settings) printChanges(ctx context.Context, task worktree.Set) error {
	all := []folderChanges{}
	for _, r := range task.Repositories {
		files, err := r.ChangedFiles(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(r.Path), err)
		}
		all = append(all, folderChanges{r.Path, files})
	}
	return set.print(all, func() error {
		for _, folder := range all {
			if err := set.printFolder(folder); err != nil {
				return err
			}
		}
		return nil
	})
}

// printFolder prints the files of a worktree below its name.
func (set *settings) printFolder(folder folderChanges) error {
	if len(folder.Files) == 0 {
		return terminal.Say(set.out, "%s: nothing changed", text.Printable(folder.Folder))
	}
	table := terminal.NewTable(set.out, "FILE", "LINES")
	added, removed := 0, 0
	for _, f := range folder.Files {
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		if f.Binary {
			lines = "binary"
		}
		table.Row(text.Printable(f.Path), lines)
		added, removed = added+f.Added, removed+f.Removed
	}
	err := terminal.Say(set.out, "%s: %s, +%d -%d", text.Printable(folder.Folder),
		text.Count(len(folder.Files), "file", "files"), added, removed)
	if err != nil {
		return err
	}
	return table.Print()
}

// printPatches prints the changes so that git apply can read those of one worktree.
func (set *settings) printPatches(ctx context.Context, task worktree.Set) error {
	for _, r := range task.Repositories {
		patch, err := r.Patch(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(r.Path), err)
		}
		if terminal.Is(set.out) {
			patch = text.Plain(patch)
		}
		if _, err := fmt.Fprintf(set.out, "# %s\n%s", text.Printable(r.Path), patch); err != nil {
			return err
		}
	}
	return nil
}
