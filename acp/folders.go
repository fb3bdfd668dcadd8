package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/folders"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Folder is a folder that the user, rather than the client, wants sessions to have. Its fields:
//
//	Path     string        // absolute; it is checked like the client's
//	Setting  string        // where the user declared it, for messages: "--dir", "workspaces[0] in
//	                       // ~/.config/acp-agent/config.json"
//	ReadOnly bool          // nothing in it may be changed, even if the client names it
//	Of       workspace.Dir // the folder of the main checkout for which it was declared, if the
//	                       // working directory is in a worktree of that
type Folder = folders.Folder

// DeclaredFolders returns the folders of a session in cwd whose client names no folders: the
// declared ones, then those that the user added to the session, if it has an id, or to all in cwd.
// consentDir is that of [Options]. In a worktree of git they are those of the same folder in the
// main checkout, or the worktrees that were made together with it. It reads disks.
func DeclaredFolders(
	cwd workspace.Dir, session sessionstore.ID, declared []Folder, consentDir string, w Worktrees,
) ([]Folder, error) {
	var all []Folder
	found, err := folders.Declare(cwd, session, declared, consent.NewStore(consentDir), w.registry())
	for _, one := range found {
		all = append(all, one.Folder)
	}
	return all, err
}

// declaredFolders returns what [DeclaredFolders] does, with the options of the connection.
func (a *adapter) declaredFolders(
	cwd workspace.Dir, session sessionstore.ID,
) ([]folders.Declared, error) {
	o := a.options
	return folders.Declare(cwd, session, o.Folders(cwd), a.consents(), o.Worktrees.registry())
}

// consents returns the store of what the user allowed permanently.
func (a *adapter) consents() *consent.Store { return consent.NewStore(a.options.ConsentDir) }

// origins returns the folders from which worktrees were made.
func (a *adapter) origins() worktree.Origins {
	origins, err := a.options.Worktrees.registry().Origins()
	if err != nil {
		a.log.Warn("rules about permissions may not hold in some worktrees", "error", err)
	}
	return origins
}

// chooseFolders returns p with the folders that the session of a lifecycle request gets, as
// [folders.Set.Choose] decides. stored is the session that is loaded, resumed or copied, the zero
// value for a new one. Folders that the user added to the source of a copy count for the copy only
// with KeepFolders.
func (a *adapter) chooseFolders(
	ctx context.Context, p sessionParams, cause backend.Cause, stored sessionstore.Session,
) (sessionParams, error) {
	keeps, session := stored.ID != "" && a.options.KeepFolders, stored.ID
	if cause == backend.Fork && !keeps {
		session = ""
	}
	chosen, err := tasks.FromDisk(ctx, a.tasks, func() (folders.Set, error) {
		declared, err := a.declaredFolders(p.folders.Cwd(), session)
		if err != nil {
			return p.folders, err
		}
		return p.folders.Choose(declared, stored.Keys, keeps)
	})
	return p.withFolders(chosen), err
}

// withFolders returns p with these folders, as if the client had named them. MCP servers that were
// found in others are left out.
func (p sessionParams) withFolders(set folders.Set) sessionParams {
	had, has := p.folders.Additional(), set.Additional()
	p.folders = set
	if has.Equal(had) {
		return p
	}
	p.rest = strictjson.Set(p.rest, protocol.AdditionalDirectories, backend.Encode(has))
	roots := set.Roots()
	return p.withFound(func(c mcpclient.Config) bool {
		file, err := workspace.ParseDir(c.File)
		for _, root := range roots.All() {
			if err == nil && root.Contains(file) {
				return false
			}
		}
		return true
	})
}
