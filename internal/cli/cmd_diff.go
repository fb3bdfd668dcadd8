package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newDiff(set *settings) *cobra.Command {
	var patch bool
	name := takes(1, 1, "one NAME or SESSION",
		"; acp-agent worktree list and acp-agent sessions list show them")
	return set.newCommand("diff", name, needsState,
		flags{"patch": &patch, "json": &set.json, "store": nil},
		func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "patch json"); err != nil {
				return err
			}
			all, err := changesOf(cmd.Context(), set, args[0])
			if err != nil {
				return err
			}
			if patch {
				return printPatches(cmd.Context(), set, all)
			}
			return set.print(all, func() error {
				for _, folder := range all {
					if err := printFolder(set.out, folder); err != nil {
						return err
					}
				}
				return nil
			})
		})
}

// changesOf returns what was changed for the task or in the session of this name.
func changesOf(ctx context.Context, set *settings, name string) (all []changes.Folder, err error) {
	task, err := set.worktrees().Find(name)
	if err == nil {
		return changes.OfTask(ctx, task)
	}
	if !errors.Is(err, worktree.ErrNone) {
		return nil, err
	}
	err = set.withStore(func(store sessionstore.Store) error {
		one, err := findSession(ctx, store, name)
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			return fmt.Errorf("there is no task and no session %s: acp-agent worktree list and "+
				"acp-agent sessions list show all", text.QuotedName(name))
		}
		if err == nil {
			all, err = changes.OfSession(ctx, one.ID, one.Keys.Opened(), store.History(ctx, one.ID),
				set.snapshots())
		}
		return err
	})
	return all, err
}

// printFolder prints the files of a folder below its name.
func printFolder(out io.Writer, folder changes.Folder) error {
	err := terminal.Say(out, "%s: %s", text.Printable(folder.Folder), folder.Summary())
	if err != nil || len(folder.Files) == 0 {
		return err
	}
	table := terminal.NewTable(out, "FILE", "LINES", "BY")
	for _, f := range folder.Files {
		by := ""
		if f.Named {
			by = "session"
		}
		table.Row(text.Printable(f.Path), f.Lines(), by)
	}
	return table.Print()
}

// printPatches prints the changes so that git apply can read those of one folder, on a terminal
// through the user's pager.
func printPatches(ctx context.Context, set *settings, all []changes.Folder) error {
	var b strings.Builder
	for _, folder := range all {
		patch, err := folder.Patch(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(folder.Folder), err)
		}
		fmt.Fprintf(&b, "# %s: %s\n%s", text.Printable(folder.Folder), folder.Summary(), patch)
	}
	printed := b.String()
	if terminal.Is(set.out) {
		printed = text.Plain(printed)
		if showInPager(ctx, set, printed) == nil {
			return nil
		}
	}
	_, err := io.WriteString(set.out, printed)
	return err
}

// showInPager shows a text in the pager that git would use. It fails if that cannot be started. The
// pager is asked for where no repository can name one.
func showInPager(ctx context.Context, set *settings, content string) error {
	dir := set.dir()
	pager, err := process.Output(ctx, process.Command{Path: "git",
		Args: []string{"var", "GIT_PAGER"},
		Dir:  dir, Env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}})
	if err != nil {
		return err
	}
	shell := process.Command{Path: "sh", Args: []string{"-c", strings.TrimSpace(string(pager))},
		Base: append([]string{"LESS=FRX"}, os.Environ()...)} // the last one counts
	err = process.RunInTerminal(ctx, shell, strings.NewReader(content), set.out, set.err)
	if _, ended := errors.AsType[*process.ExitError](err); ended {
		return nil // by the user
	}
	return err
}
