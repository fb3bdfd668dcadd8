package folders

import (
	"slices"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Folder is a folder that the user, rather than the client, wants sessions to have.
type Folder struct {
	// Path is its absolute path. It is checked like the client's.
	Path string
	// Setting says where the user declared it, for messages: "--dir", "workspaces[0] in
	// ~/.config/acp-agent/config.json".
	Setting string
	// ReadOnly means that nothing in it may be changed, also if the client names it.
	ReadOnly bool
	// Of is the folder of the main checkout for which it was declared, if the working directory is
	// in a worktree of that.
	Of workspace.Dir
}

// Declared is a folder that the user wants one session to have.
type Declared struct {
	Folder
	confirmed bool // the user was asked about it, and it is in no setting
}

// Declare returns the folders that the user wants a session in cwd to have: those of settings, then
// those that they added to the session, if it has an id, or to all in cwd. In a worktree of git they
// are those of the same folder in the main checkout, or the worktrees that were made together with
// it. Declare reads disks. worktrees may be nil.
func Declare(
	cwd workspace.Dir, session sessionstore.ID, settings []Folder, consents *consent.Store,
	worktrees *worktree.Registry,
) ([]Declared, error) {
	var all []Declared
	for _, f := range settings {
		all = append(all, Declared{Folder: f})
	}
	origins, _ := worktrees.Origins() // whoever opens the session warns if some cannot be read
	real := workspace.Real(cwd)
	added, err := consents.Folders(string(session), append(origins.Of(real), real)...)
	for _, c := range added {
		f := Folder{Path: c.Folder.String(), Setting: c.Setting(), ReadOnly: c.ReadOnly}
		if c.Root != real {
			f.Of, f.Setting = c.Root, f.Setting+worktree.OriginNote(c.Root)
		}
		all = append(all, Declared{Folder: f, confirmed: true})
	}
	for i, f := range all {
		dir, wrong := workspace.ParseDir(f.Path)
		switch {
		case f.Of.IsZero(), wrong != nil: // opening the session says what is wrong
		case workspace.Real(dir) == f.Of:
			all[i].Path = cwd.String()
		default:
			all[i].Path = origins.Beside(real, dir).String()
		}
	}
	return all, err
}

// SettingOf returns the setting of the first of the folders that is dir, or "".
func SettingOf(all []Declared, dir workspace.Dir) string {
	e, _ := entryOf(all, dir)
	return e.setting
}

// entryOf returns the first of the folders that is dir, and whether there is one.
func entryOf(all []Declared, dir workspace.Dir) (found entry, ok bool) {
	i := slices.IndexFunc(all, func(d Declared) bool {
		parsed, err := workspace.ParseDir(d.Path) // if that fails, opening the session does
		return err == nil && parsed == dir
	})
	if i < 0 {
		return found, false
	}
	return all[i].entry(dir), true
}

// entry returns the entry of the folder, whose path is dir.
func (d Declared) entry(dir workspace.Dir) entry {
	e := entry{dir: dir, grant: grant(d.ReadOnly), source: declared, setting: d.Setting}
	if d.confirmed {
		e.source = confirmed
	}
	return e
}
