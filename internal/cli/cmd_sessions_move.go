package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// moveFlags are the flags of sessions move.
type moveFlags struct{ yes bool }

func newSessionsMove(s streams, set *settings) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move OLD NEW [--yes]",
		Short: "Let sessions follow a folder that was renamed or moved",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf("%s needs the OLD and the NEW path of the folder (got %d arguments)",
					words(cmd), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(
			*cobra.Command, []string, string,
		) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := newMove(args[0], args[1])
			if err != nil {
				return err
			}
			consents, err := set.consents()
			if err != nil {
				return err
			}
			return set.withStore(s.err, func(store sessionstore.Store) error {
				return f.move(cmd.Context(), s, store, consents, m)
			})
		},
	}
	set.accept(cmd, "state-dir", "store")
	cmd.Flags().BoolVar(&f.yes, "yes", false,
		"change the sessions instead of only showing what would change")
	return cmd
}

// move shows what m changes, and changes it with --yes.
func (f moveFlags) move(
	ctx context.Context, s streams, store sessionstore.Store, consents *consent.Store, m sessions.Move,
) error {
	moved, err := f.sessions(ctx, s, store, m)
	if err != nil {
		return err
	}
	added, err := f.consents(s, consents, m)
	if err != nil {
		return err
	}
	count := text.Count(moved, "session", "sessions")
	if added > 0 {
		count += " and " + text.Count(added, "added folder", "added folders")
	}
	switch {
	case moved == 0 && added == 0:
		s.note("no session has a folder in %s",
			text.Printable(m.From().String()))
	case f.yes:
		_, err = fmt.Fprintf(s.out, "moved %s\n", count)
	default:
		_, err = fmt.Fprintf(s.out, "would move %s; add --yes to do it\n", count)
	}
	return err
}

// consents shows the folders added with /roots that m changes, and changes them with --yes. It
// returns their number.
func (f moveFlags) consents(s streams, store *consent.Store, m sessions.Move) (n int, err error) {
	all, err := store.List()
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		root, rootMoved := m.RealPath(c.Root)
		folder, folderMoved := m.RealPath(c.Folder)
		if c.Folder.IsZero() || !rootMoved && !folderMoved {
			continue
		}
		n++
		if f.yes {
			if err := store.Allow(consent.ForFolder(root, folder, c.Session)); err != nil {
				return n, err
			}
			if err := store.Forget(c.ID); err != nil {
				return n, err
			}
		}
		if _, err := fmt.Fprintf(s.out, "folder %s, added in %s\n",
			text.Printable(c.Folder.String()), text.Printable(c.Root.String())); err != nil {
			return n, err
		}
	}
	return n, nil
}

// sessions shows the sessions that m changes, and changes them with --yes. It returns their number.
func (f moveFlags) sessions(
	ctx context.Context, s streams, store sessionstore.Store, m sessions.Move,
) (n int, err error) {
	for session, err := range sessions.All(ctx, store, sessionstore.Query{}) {
		if err != nil {
			return n, err
		}
		to, changed, err := m.Keys(session.Keys)
		if err != nil {
			return n, err
		}
		if !changed {
			continue
		}
		if f.yes {
			err := sessions.SetKeys(ctx, store, session, to)
			if errors.As(err, new(*sessionstore.NotFoundError)) {
				continue // deleted meanwhile
			}
			if err != nil {
				return n, err
			}
		}
		n++
		if err := showMove(s, session, to); err != nil {
			return n, err
		}
	}
	return n, nil
}

func showMove(s streams, session sessionstore.Session, to sessionstore.Keys) error {
	if _, err := fmt.Fprintf(s.out, "%s  %s\n", session.ID,
		text.Line(text.Plain(session.Title), 80)); err != nil {
		return err
	}
	spelled := workspace.Dir.String
	before, after := folders(session.Keys.Roots.All(), spelled), folders(to.Roots.All(), spelled)
	if before == after {
		_, err := fmt.Fprintf(s.out, "  %s (only its real path changes)\n", before)
		return err
	}
	_, err := fmt.Fprintf(s.out, "  from %s\n  to   %s\n", before, after)
	return err
}

// newMove returns the move of the folder at the path from to the path to, where it must be.
func newMove(from, to string) (sessions.Move, error) {
	dirs, err := usage.Absolute(from, to)
	if err != nil {
		return sessions.Move{}, err
	}
	if dirs.Len() < 2 {
		return sessions.Move{}, usage.Errorf("the old and the new path are the same")
	}
	if info, err := os.Stat(dirs.At(1).String()); err != nil || !info.IsDir() {
		return sessions.Move{}, usage.Errorf("there is no folder %s: move the folder first, then its sessions",
			text.Printable(dirs.At(1).String()))
	}
	return sessions.NewMove(dirs.At(0), dirs.At(1))
}
