package folders

import (
	"errors"
	"slices"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Folder is a folder that the user, rather than the client, wants sessions to have. Package acp
// describes its fields.
type Folder struct {
	Path     string
	Setting  string
	ReadOnly bool
	Of       workspace.Dir
}

// Declared is a folder that the user wants one session to have.
type Declared struct {
	Folder
	dir    workspace.Dir        // its path
	wrong  workspace.RootErrors // if it has none
	source source
}

// Declare returns the folders that the user wants a session in cwd to have: those of settings, then
// those that they added to the session, if it has an id, or to all in cwd. In a worktree of git it
// takes those of the main checkout. It reads disks. worktrees may be nil.
func Declare(
	cwd workspace.Dir, session sessionstore.ID, settings []Folder, consents *consent.Store,
	worktrees *worktree.Registry,
) ([]Declared, error) {
	var all []Declared
	for _, f := range settings {
		dir, err := workspace.ParseDir(f.Path)
		wrong, _ := errors.AsType[workspace.RootErrors](err)
		all = append(all, Declared{Folder: f, dir: dir, wrong: wrong, source: declared})
	}
	origins, _ := worktrees.Origins() // opening the session warns if some cannot be read
	real := workspace.Real(cwd)
	added, err := consents.Folders(string(session), append(origins.Of(real), real)...)
	for _, c := range added {
		d := confirmedBy(c)
		if c.Root != real {
			d.Of, d.Setting = c.Root, d.Setting+worktree.OriginNote(c.Root)
		}
		all = append(all, d)
	}
	for i, d := range all {
		switch {
		case d.Of.IsZero(), d.wrong != nil: // opening the session says what is wrong
			continue
		case workspace.Real(d.dir) == d.Of:
			d.dir = cwd
		default:
			d.dir = origins.Beside(real, d.dir)
		}
		d.Path = d.dir.String()
		all[i] = d
	}
	return all, err
}

// confirmedBy returns the folder that the user added with a consent.
func confirmedBy(c consent.Consent) Declared {
	f := Folder{Path: c.Folder.String(), Setting: c.Setting(), ReadOnly: c.ReadOnly}
	return Declared{Folder: f, dir: c.Folder, source: confirmed}
}

// SettingOf returns the setting of the first of the folders that is dir, or "".
func SettingOf(all []Declared, dir workspace.Dir) string {
	e, _ := entryOf(all, dir)
	return e.member
}

// entryOf returns the first of the folders that is dir, and whether there is one.
func entryOf(all []Declared, dir workspace.Dir) (found entry, ok bool) {
	i := slices.IndexFunc(all, func(d Declared) bool { return d.dir == dir })
	if i < 0 {
		return found, false
	}
	return all[i].entry(), true
}

func (d Declared) entry() entry {
	e := entry{dir: d.dir, source: d.source, member: d.Setting}
	if d.ReadOnly {
		e.grant = workspace.ReadOnly
	}
	return e
}
