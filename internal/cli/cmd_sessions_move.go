package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newSessionsMove(set *settings) *cobra.Command {
	yes := false
	paths := takes(2, 2, "the OLD and the NEW path of the folder", "")
	cmd := set.newCommand("move", paths, needsStore, flags{"yes": &yes},
		func(cmd *cobra.Command, args []string) error {
			m, err := newMove(args[0], args[1])
			if err != nil {
				return err
			}
			return set.withStore(func(store sessionstore.Store) error {
				return mover{set, m, store, yes}.run(cmd.Context())
			})
		})
	cmd.ValidArgsFunction = directories
	return cmd
}

// mover lets sessions and permissions follow a folder.
type mover struct {
	*settings
	sessions.Move
	store sessionstore.Store
	yes   bool // change them, instead of only showing what would change
}

// run shows what changes, and changes it with --yes.
func (m mover) run(ctx context.Context) error {
	moved, err := m.moveSessions(ctx)
	if err != nil {
		return err
	}
	added, err := m.moveConsents()
	if err != nil {
		return err
	}
	count := text.Count(moved, "session", "sessions")
	if added > 0 {
		count += " and " + text.Count(added, "added folder", "added folders")
	}
	switch {
	case moved == 0 && added == 0:
		m.note("no session has a folder in %s", text.Printable(m.From().String()))
	case m.yes:
		_, err = fmt.Fprintf(m.out, "moved %s\n", count)
	default:
		_, err = fmt.Fprintf(m.out, "would move %s; add --yes to do it\n", count)
	}
	return err
}

// moveConsents moves the folders added with /roots, and returns their number.
func (m mover) moveConsents() (n int, err error) {
	all, err := m.consents().List()
	for _, c := range all {
		root, rootMoved := m.RealPath(c.Root)
		folder, folderMoved := m.RealPath(c.Folder)
		if err != nil || c.Folder.IsZero() || !rootMoved && !folderMoved {
			continue
		}
		n++
		if m.yes {
			err = m.consents().Allow(consent.ForFolder(root, folder, c.Session))
			if err == nil {
				err = m.consents().Forget(c.ID)
			}
		}
		if err == nil {
			_, err = fmt.Fprintf(m.out, "folder %s, added in %s\n",
				text.Printable(c.Folder.String()), text.Printable(c.Root.String()))
		}
	}
	return n, err
}

// moveSessions moves the sessions, and returns their number.
func (m mover) moveSessions(ctx context.Context) (n int, err error) {
	for session, err := range sessions.All(ctx, m.store, sessionstore.Query{}) {
		if err != nil {
			return n, err
		}
		to, changed, err := m.Keys(session.Keys)
		if changed && m.yes {
			err = sessions.SetKeys(ctx, m.store, session, to)
		}
		if !changed && err == nil || errors.As(err, new(*sessionstore.NotFoundError)) {
			continue // it has no such folder, or was deleted meanwhile
		}
		n++
		if err == nil {
			err = showMove(m.streams, session, to)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func showMove(s streams, session sessionstore.Session, to sessionstore.Keys) error {
	before, after := folders(session.Keys.Roots.All(), false), folders(to.Roots.All(), false)
	change := fmt.Sprintf("  from %s\n  to   %s\n", before, after)
	if before == after {
		change = fmt.Sprintf("  %s (only its real path changes)\n", before)
	}
	_, err := fmt.Fprintf(s.out, "%s  %s\n%s", session.ID,
		text.Line(text.Plain(session.Title), 80), change)
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
	if !namedfile.IsDir(dirs.At(1).String()) {
		return sessions.Move{},
			usage.Errorf("there is no folder %s: move the folder first, then its sessions",
				text.Printable(dirs.At(1).String()))
	}
	return sessions.NewMove(dirs.At(0), dirs.At(1))
}
