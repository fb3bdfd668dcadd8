package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// newWorktree returns the commands for worktrees of all folders of a session.
func newWorktree(s streams, set *settings) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "worktree",
		Short: "Work on one task in worktrees of several repositories",
	}, newWorktreeAdd(s, set), newWorktreeList(s, set), newWorktreeRemove(s, set))
}

// worktrees returns the registry of worktrees. These lie beside the state directory, in which no
// session may have a folder.
func (set *settings) worktrees() (*worktree.Registry, error) {
	dir, err := set.stateDirectory()
	if err != nil {
		return nil, err
	}
	return worktreesOf(dir), nil
}

// worktreesOf returns the registry of worktrees for a state directory.
func worktreesOf(state string) *worktree.Registry {
	return worktree.NewRegistry(worktreeDirs(state))
}

// worktreeDirs returns where worktrees are noted, and where they are made.
func worktreeDirs(state string) (records, dir string) {
	return filepath.Join(state, "worktrees"), filepath.Clean(state) + "-worktrees"
}

// worktreesFor returns where sessions make worktrees.
func (set *settings) worktreesFor(state string) acp.Worktrees {
	records, dir := worktreeDirs(state)
	return acp.Worktrees{Records: records, Dir: dir, Copy: set.copiedFiles}
}

func newWorktreeAdd(s streams, set *settings) *cobra.Command {
	var r rootFlags
	var o worktree.Options
	cmd := &cobra.Command{
		Use:   "add NAME [--cwd DIR] [--dir DIR]... [--existing]",
		Short: "Make worktrees of the folders of a session",
		Args:  oneWorktree,
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := set.makeWorktrees(cmd.Context(), s, args[0], r, o)
			if err != nil {
				return err
			}
			return printWorktrees(s, made)
		},
	}
	r.define(cmd)
	cmd.Flags().BoolVar(&o.Existing, "existing", false, "use branches of this name that exist already")
	set.accept(cmd, "state-dir")
	return cmd
}

// makeWorktrees makes worktrees of the folders that the flags name, and says what they lack.
func (set *settings) makeWorktrees(
	ctx context.Context, s streams, name string, r rootFlags, o worktree.Options,
) (worktree.Set, error) {
	registry, err := set.worktrees()
	if err != nil {
		return worktree.Set{}, err
	}
	folders, _, err := set.sessionRoots(r)
	if err != nil {
		return worktree.Set{}, err
	}
	o.Copy = set.copiedFiles(folders.Cwd())
	plan, err := registry.Plan(ctx, name, folders, o)
	if err != nil {
		return worktree.Set{}, err
	}
	for _, line := range plan.Describe() {
		s.note("%s", line)
	}
	return plan.Make(ctx)
}

// copiedFiles returns the patterns for ignored files that worktrees of a session in cwd get.
func (set *settings) copiedFiles(cwd workspace.Dir) []string {
	if i := set.config.WorkspaceOf(cwd); i >= 0 {
		return set.config.Workspaces[i].Worktree.Copy
	}
	return nil
}

// printWorktrees prints the folders, and how to open them.
func printWorktrees(s streams, made worktree.Set) error {
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
	_, err := fmt.Fprintf(s.err, "acp-agent: open them with one of\n  %s PROMPT\n  zed%s\n  code%[2]s\n",
		run, editor)
	return err
}

func newWorktreeList(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [--json]",
		Short: "Show the worktrees, and how to merge their branches",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			registry, err := set.worktrees()
			if err != nil {
				return err
			}
			all, err := registry.List()
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(s.out, append([]worktree.Set{}, all...))
			}
			return listWorktrees(s, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	set.accept(cmd, "state-dir")
	return cmd
}

func listWorktrees(s streams, all []worktree.Set) error {
	if len(all) == 0 {
		s.note("there are no worktrees; acp-agent worktree add NAME makes them")
		return nil
	}
	table := terminal.NewTable(s.out, "NAME", "FOLDER", "ORIGINAL")
	var merges []string
	for _, set := range all {
		for _, r := range set.Repositories {
			path := text.Printable(r.Path)
			if set.State != worktree.Complete {
				path += " (" + string(set.State) + ": run acp-agent worktree remove)"
			} else if missing := r.Missing(); missing != "" {
				path += " (" + missing + ")"
			}
			table.Row(text.Printable(set.Name), path, text.Printable(r.Top))
			merges = append(merges, r.Merge())
		}
		for _, f := range set.Folders {
			if f.Shared {
				table.Row(text.Printable(set.Name), text.Printable(f.Path), "(shared)")
			}
		}
	}
	if err := table.Print(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "\nTo merge their branches:\n  %s\n", strings.Join(merges, "\n  "))
	return err
}

func newWorktreeRemove(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove worktrees in which nothing can be lost",
		Args:  oneWorktree,
		RunE: func(cmd *cobra.Command, args []string) error {
			registry, err := set.worktrees()
			if err != nil {
				return err
			}
			removed, err := registry.Remove(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if removed.State == worktree.HalfMade {
				return terminal.Say(s.out, "removed what was made of the worktrees %s, with its "+
					"branches", text.Printable(removed.Name))
			}
			fmt.Fprintf(s.out, "removed the worktrees %s; to merge their branches:\n",
				text.Printable(removed.Name))
			for _, r := range removed.Repositories {
				fmt.Fprintln(s.out, " ", r.Merge())
			}
			return nil
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}

// enterWorktrees makes the worktrees of a name, unless they were made before for the same folders,
// and returns their folders.
func (set *settings) enterWorktrees(
	ctx context.Context, s streams, name string, r rootFlags,
) (workspace.Roots, error) {
	registry, err := set.worktrees()
	if err != nil {
		return workspace.Roots{}, err
	}
	made, err := registry.Find(name)
	if errors.Is(err, worktree.ErrNone) {
		made, err = set.makeWorktrees(ctx, s, name, r, worktree.Options{})
	} else if err == nil {
		err = set.checkWorktrees(made, r)
	}
	if err != nil {
		return workspace.Roots{}, err
	}
	return made.Roots()
}

// checkWorktrees checks that worktrees were made for the folders that the flags name, and are still
// there.
func (set *settings) checkWorktrees(made worktree.Set, r rootFlags) error {
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
	if made.State != worktree.Complete ||
		slices.ContainsFunc(made.Repositories, func(r *worktree.Repository) bool {
			return r.Missing() != ""
		}) {
		return fmt.Errorf("the worktrees %s are not complete: run acp-agent worktree remove %s, and then "+
			"acp-agent worktree add --existing", text.Printable(made.Name), text.ShellWord(made.Name))
	}
	return nil
}

func oneWorktree(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usage.Errorf("%s needs one NAME", words(cmd))
	}
	return nil
}
