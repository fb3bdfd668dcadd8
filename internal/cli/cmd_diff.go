package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// newDiff returns the command that shows what was changed for a task or in a session.
func newDiff(set *settings) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:   "diff NAME|SESSION [--patch | --json]",
		Short: "Show what was changed in all folders of a task or a session",
		Args: takes(1, 1, "one NAME or SESSION",
			"; acp-agent worktree list and acp-agent sessions list show them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "patch", "json"); err != nil {
				return err
			}
			all, err := set.changesOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if patch {
				return printPatches(cmd.Context(), set.out, all)
			}
			return set.print(all, func() error {
				for _, folder := range all {
					if err := printFolder(set.out, folder); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&patch, "patch", false, "print the changes, as git diff does")
	set.accept(cmd, "state-dir", "store", "json")
	return cmd
}

// changesOf returns what was changed for the task or in the session of this name.
func (set *settings) changesOf(ctx context.Context, name string) (all []changes.Folder, err error) {
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

// snapshots returns what folders of sessions had before.
func (s *storeSettings) snapshots() worktree.Snapshots {
	return worktree.NewSnapshots(s.snapshotDir())
}

// snapshotDir returns the directory for snapshots of the sessions in the configured store.
func (s *storeSettings) snapshotDir() string {
	dir, name := s.dir(), "sessions"
	if dir == "" {
		return ""
	}
	if address, err := url.Parse(s.store); err == nil && s.store != "" {
		name = url.PathEscape(address.Host + address.Path)
	}
	return filepath.Join(dir, "snapshots", name)
}

// deleteSession deletes a session and its snapshots.
func (s *storeSettings) deleteSession(
	store sessionstore.Store, ctx context.Context, id sessionstore.ID,
) error {
	if err := store.Delete(ctx, id); err != nil {
		return err
	}
	return s.snapshots().Remove(string(id))
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

// printPatches prints the changes so that git apply can read those of one folder.
func printPatches(ctx context.Context, out io.Writer, all []changes.Folder) error {
	var b strings.Builder
	for _, folder := range all {
		patch, err := folder.Patch(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(folder.Folder), err)
		}
		fmt.Fprintf(&b, "# %s: %s\n%s", text.Printable(folder.Folder), folder.Summary(), patch)
	}
	printed := b.String()
	if terminal.Is(out) {
		printed = text.Plain(printed)
	}
	_, err := io.WriteString(out, printed)
	return err
}
