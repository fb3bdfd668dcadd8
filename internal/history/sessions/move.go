package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Move is a folder's change of place.
type Move struct {
	from     []workspace.Dir // its old path, as given and without links
	to, real workspace.Dir   // its new path, as given and without links
}

// NewMove returns the move of the folder at the path from to the path to, where it is now.
func NewMove(from, to workspace.Dir) (Move, error) {
	m := Move{from: []workspace.Dir{from}, to: to, real: workspace.Real(to)}
	if slices.Contains(strings.Split(filepath.ToSlash(to.String()), "/"), "..") {
		m.to = m.real
	}
	// Nothing may be left at the old path, so its real path is that of its parent with its name.
	if parent, name := filepath.Split(from.String()); name != ".." {
		dir, err := workspace.ParseDir(parent)
		if err != nil {
			return Move{}, err
		}
		real, err := workspace.ParseDir(filepath.Join(workspace.Real(dir).String(), name))
		if err != nil {
			return Move{}, err
		}
		m.from = append(m.from, real)
	}
	return m, nil
}

// From returns the old path, as given.
func (m Move) From() workspace.Dir { return m.from[0] }

// RealPath returns the path without links of a folder after the move, and whether it was in the
// moved one.
func (m Move) RealPath(d workspace.Dir) (workspace.Dir, bool) {
	for _, from := range m.from {
		if moved, ok := d.Moved(from, m.real); ok {
			return moved, true
		}
	}
	return d, false
}

// Keys returns what k is after the move, and whether that differs.
func (m Move) Keys(k sessionstore.Keys) (moved sessionstore.Keys, changed bool, err error) {
	var spellings, readOnly []string
	for i, dir := range k.Roots.All() {
		real, realMoved := m.RealPath(k.Real[i])
		to, ok := dir.Moved(m.from[0], m.to)
		if !ok {
			to, ok = m.RealPath(dir)
		}
		if !ok && realMoved {
			if _, err := os.Stat(dir.String()); errors.Is(err, fs.ErrNotExist) {
				to, ok = real, true // it was spelled through a link
			}
		}
		changed = changed || ok || realMoved
		if slices.Contains(spellings, to.String()) {
			continue // roots contain no path twice
		}
		spellings = append(spellings, to.String())
		if k.Roots.Grant(dir) == workspace.ReadOnly {
			readOnly = append(readOnly, to.String())
		}
		moved.Real = append(moved.Real, real)
	}
	moved.Roots, err = workspace.NewRoots(spellings[0], spellings[1:])
	moved.Roots = moved.Roots.ReadOnlyAt(readOnly)
	return moved, changed, err
}

// SetKeys gives a session other keys, unless it was opened since it was listed.
func SetKeys(
	ctx context.Context, store sessionstore.Sessions, s sessionstore.Session, to sessionstore.Keys,
) error {
	_, err := store.Move(ctx, sessionstore.Lease{ID: s.ID, Generation: s.Generation}, to)
	if _, ok := errors.AsType[*sessionstore.FencedError](err); ok {
		return fmt.Errorf("session %s was opened in the meantime: run the command again", s.ID)
	}
	return err
}
