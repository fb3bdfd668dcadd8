package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
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

	source folderSource
	kept   bool // nothing but the stored list of the session has it; see leaveOut
}

// folderSource says who wants a session to have a folder. Zero is the user, in a setting.
type folderSource int

const (
	// confirmedFolder is one that the user was asked about. Its path is the real path, which must
	// not lead elsewhere.
	confirmedFolder folderSource = 1 + iota
	storedFolder                 // nobody now: the session had it
	clientFolder
)

// chooseFolders returns p with the additional roots that the session of a lifecycle request gets.
// stored is the session that is loaded, resumed or copied, the zero value for a new one.
//
//   - A list of the client stays as it is, even if it is empty.
//   - With KeepFolders, a session that is opened again has the roots that are stored, and a copy
//     those of its source.
//   - Otherwise it has those that the user declared for its cwd, and those that the user added to
//     this session. Folders that they added to the source of a copy do not count for the copy.
//
// Whoever names the folders, withGrants then says in which of them nothing may be changed.
//
// What it returns is opened, stored, listed and sent to the agent. The next steps are:
//
//   - openRoots opens the roots: it resolves links, applies the limits of workspace.Policy, such as
//     what a user of a server may open, and leaves out kept folders that are gone.
//   - checkShown refuses a folder that leads elsewhere than when the user allowed it.
//   - droppedFolders says what the session has lost, and listing.MovedRoots what was renamed.
//
// Every lifecycle request passes through here, so a rule that gives a session other additional
// roots than the request names belongs here.
func (a *adapter) chooseFolders(
	ctx context.Context, p sessionParams, cause backend.Cause, stored sessionstore.Session,
) (sessionParams, error) {
	keeps, session := stored.ID != "" && a.options.KeepFolders, stored.ID
	if cause == backend.Fork && !keeps {
		session = ""
	}
	folders, err := a.declaredFolders(ctx, p.roots.Cwd(), session)
	if err != nil {
		return p, err
	}
	chosen := folders
	if keeps {
		chosen = keptFolders(stored.Keys.Roots.Additional(), folders)
	}
	if !p.listed && len(chosen) > 0 {
		if p, err = p.withFolders(chosen); err != nil {
			return p, err
		}
	}
	return tasks.FromDisk(ctx, a.tasks, func() (sessionParams, error) {
		return p.withGrants(folders, stored), nil
	})
}

// withGrants returns p with those roots read-only that the user has declared so, or that were when
// the stored session, or the source of a copy, was last opened, and what is below them. Only a
// declaration of the user makes such a folder writable again, nothing that a client names or leaves
// out. The working directory of a new session may be in a folder that is declared so.
func (p sessionParams) withGrants(declared []Folder, stored sessionstore.Session) sessionParams {
	var given, known []workspace.Root
	for _, f := range declared {
		if dir, err := workspace.ParseDir(f.Path); err == nil { // otherwise opening it fails
			given = append(given, workspace.Root{Dir: dir, Real: workspace.Real(dir),
				Grant: f.grant()})
		}
	}
	isGiven := func(real workspace.Dir) bool {
		return slices.ContainsFunc(given, func(r workspace.Root) bool { return r.Real == real })
	}
	for _, root := range stored.Keys.Opened() {
		if !isGiven(root.Real) {
			known = append(known, root)
		}
	}
	p.roots = p.roots.Granting(func(dir workspace.Dir) workspace.Grant {
		real, all := workspace.Real(dir), known
		if dir != p.roots.Cwd() || isGiven(real) {
			all = slices.Concat(known, given)
		}
		grant, _ := workspace.GrantOf(real, all)
		return grant
	})
	return p
}

func (f Folder) grant() workspace.Grant {
	if f.ReadOnly {
		return workspace.ReadOnly
	}
	return workspace.ReadWrite
}

// declaredFolders returns [DeclaredFolders] with the options of the connection.
func (a *adapter) declaredFolders(
	ctx context.Context, cwd workspace.Dir, session sessionstore.ID,
) ([]Folder, error) {
	return tasks.FromDisk(ctx, a.tasks, func() ([]Folder, error) {
		o := a.options
		return DeclaredFolders(cwd, session, o.Folders(cwd), o.ConsentDir, o.Worktrees)
	})
}

// DeclaredFolders returns the folders of a session in cwd whose client names no folders: the
// declared ones, then those that the user added to the session, if it has an id, or to all in cwd.
// consentDir is that of [Options]. In a worktree of git they are those of the same folder in the
// main checkout, or the worktrees that were made together with it. It reads disks.
func DeclaredFolders(
	cwd workspace.Dir, session sessionstore.ID, declared []Folder, consentDir string, w Worktrees,
) ([]Folder, error) {
	origins, _ := w.registry().Origins() // adapter.origins warns if some cannot be read
	real := workspace.Real(cwd)
	folders := slices.Clone(declared)
	added, err := consent.NewStore(consentDir).Folders(string(session), append(origins.Of(real), real)...)
	for _, c := range added {
		f := addedFolder(c)
		if c.Root != real {
			f.Of, f.Setting = c.Root, f.Setting+OfWorktree(c.Root)
		}
		folders = append(folders, f)
	}
	for i, f := range folders {
		dir, wrong := workspace.ParseDir(f.Path)
		switch {
		case f.Of.IsZero(), wrong != nil: // opening the session says what is wrong
		case workspace.Real(dir) == f.Of:
			folders[i].Path = cwd.String()
		default:
			folders[i].Path = origins.Beside(real, dir).String()
		}
	}
	return folders, err
}

// OfWorktree returns what the setting of a folder says besides if it was declared for original, of
// which the working directory is a worktree.
func OfWorktree(original workspace.Dir) string {
	return ", folders of " + text.Printable(original.String()) + ", of which this is a worktree"
}

// consents returns the store of what the user allowed permanently.
func (a *adapter) consents() *consent.Store { return consent.NewStore(a.options.ConsentDir) }

// addedFolder returns the folder that the user added with a consent.
func addedFolder(c consent.Consent) Folder {
	return Folder{Path: c.Folder.String(), Setting: c.Setting(), ReadOnly: c.ReadOnly,
		source: confirmedFolder}
}

// keptFolders returns the stored folders. Those that are also declared have the setting that
// declares them. What the user added to the session is in the list only because it was stored.
func keptFolders(stored workspace.Dirs, declared []Folder) []Folder {
	kept := make([]Folder, 0, stored.Len())
	for _, dir := range stored.All() {
		f, isDeclared := findFolder(declared, dir)
		if !isDeclared {
			f = Folder{Path: dir.String(), Setting: "the session's stored folder",
				source: storedFolder}
		}
		f.kept = !isDeclared || f.source == confirmedFolder
		kept = append(kept, f)
	}
	return kept
}

// findFolder returns the first of the folders that is dir, and whether there is one.
func findFolder(folders []Folder, dir workspace.Dir) (f Folder, found bool) {
	i := slices.IndexFunc(folders, func(f Folder) bool {
		parsed, err := workspace.ParseDir(f.Path) // if that fails, opening the session does
		return err == nil && parsed == dir
	})
	if i < 0 {
		return f, false
	}
	return folders[i], true
}

// additional returns the additional roots of the request, each with its source.
func (p sessionParams) additional() []Folder {
	folders := make([]Folder, 0, p.roots.Additional().Len())
	for _, dir := range p.roots.Additional().All() {
		f, isKnown := findFolder(p.folders, dir)
		if !isKnown {
			f.Setting, f.source = unnamedClient, clientFolder
		}
		f.Path = dir.String() // the setting may spell it in another way
		f.ReadOnly = p.roots.Grant(dir) == workspace.ReadOnly
		f.kept = false // a change of the open session is about all of them
		folders = append(folders, f)
	}
	return folders
}

// openedRoots are what a session has got of the roots that its request asks for.
type openedRoots struct {
	unguarded *workspace.Workspace // without the rules about files; backends get host.Workspace
	params    sessionParams        // without the folders that are missing
	missing   []workspace.RootError
}

// openRoots opens the roots of the request, without the kept folders that cannot be opened. It
// tries again after each error that was only about such folders; others may be gone by then.
func (p sessionParams) openRoots(
	ctx context.Context, o workspace.Options,
) (opened openedRoots, err error) {
	opened.params = p
	for {
		opened.unguarded, err = workspace.Open(ctx, opened.params.roots, o)
		without, missing := opened.params.leaveOut(err)
		if missing == nil {
			return opened, opened.params.refusal(err)
		}
		opened.params, opened.missing = without, append(opened.missing, missing...)
	}
}

// leaveOut returns p without the kept folders that err is about, and the errors of these folders.
// Whoever names a folder can correct the request, but a client that names none could never open the
// session again.
func (p sessionParams) leaveOut(err error) (sessionParams, []workspace.RootError) {
	roots, _ := errors.AsType[workspace.RootErrors](err)
	var missing []workspace.RootError
	left := slices.DeleteFunc(slices.Clone(p.folders), func(f Folder) bool {
		i := slices.IndexFunc(roots, func(e workspace.RootError) bool { return e.Path == f.Path })
		if !f.kept || i < 0 {
			return false
		}
		missing = append(missing, roots[i])
		return true
	})
	if missing == nil {
		return p, nil
	}
	without, _ := p.withFolders(left) // they were parsed before
	return without, missing
}

// checkShown checks that the paths of the folders that the user allowed still lead to the same
// directories as when the user was asked.
func (r openedRoots) checkShown() error {
	var wrong []strictjson.Violation
	for _, root := range r.unguarded.Opened() {
		f, _ := findFolder(r.params.folders, root.Dir)
		if f.source == confirmedFolder && root.Index > 0 && root.Real != root.Dir {
			wrong = append(wrong, strictjson.NewViolation(f.Setting, f.Path, strictjson.Unreadable).
				Expecting("it now leads to "+root.Real.String()+": add that folder instead"))
		}
	}
	return strictjson.Refuse(wrong...)
}

// withFolders returns p with these additional roots, as if the client had sent them.
func (p sessionParams) withFolders(folders []Folder) (sessionParams, error) {
	paths := make([]string, len(folders))
	for i, f := range folders {
		paths[i] = f.Path
	}
	p.folders = folders
	dirs, err := workspace.ParseDirs(paths)
	if err != nil {
		return p, p.refusal(err)
	}
	return p.withRoots(workspace.RootsFrom(p.roots.Cwd(), dirs)), nil
}

// withRoots returns p with other additional roots. Those that were read-only, or that a folder of
// the user makes so, are read-only. MCP servers that were found elsewhere are left out.
func (p sessionParams) withRoots(roots workspace.Roots) sessionParams {
	before := p.roots
	p.roots = roots.Granting(func(dir workspace.Dir) workspace.Grant {
		f, _ := findFolder(p.folders, dir)
		return max(before.Grant(dir), f.grant())
	})
	p.rest = strictjson.Set(p.rest, protocol.AdditionalDirectories,
		backend.Encode(roots.Additional()))
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

// refusal returns the error for the client about an error of the roots of the request. Violations
// of declared folders name the settings that declare them.
func (p sessionParams) refusal(err error) error {
	wrong := rootViolations(err)
	for i, v := range wrong {
		switch {
		case len(p.folders) == 0 || v.Field != protocol.AdditionalDirectories:
		case v.Index == nil:
			var settings []string
			for _, f := range p.folders {
				settings = append(settings, f.Setting)
			}
			wrong[i].Field = strings.Join(slices.Compact(settings), ", ")
		default:
			wrong[i].Field, wrong[i].Index = p.folders[*v.Index].Setting, nil
		}
	}
	if wrong != nil {
		return strictjson.Refuse(wrong...)
	}
	return err
}

// hintMoves adds to an error about missing folders of a stored session how to move it. Folders that
// only the client named get no hint: they may not be the session's.
func (p sessionParams) hintMoves(err error, a *adapter) {
	movable := []string{"cwd"}
	for _, f := range p.folders {
		if f.source == confirmedFolder || f.source == storedFolder {
			movable = append(movable, f.Setting)
		}
	}
	listing.HintMoves(strictjson.ViolationsOf(err), movable, a.options.Worktrees.registry())
}

// droppedFolders returns a message to the user about folders that the session has lost although the
// client did not ask for that: it had them when it was last opened, or its source has them. The
// message is "" if there are none.
func (r openedRoots) droppedFolders(cause backend.Cause, stored sessionstore.Keys) string {
	if r.params.listed {
		return ""
	}
	opened, told := r.unguarded.Opened(), missingFolders(r.missing)
	var dropped []string
	for i, dir := range stored.Roots.All() {
		if i > 0 && !slices.ContainsFunc(opened, func(r workspace.Root) bool {
			return r.Dir == dir || r.Real == stored.Real[i]
		}) && !slices.ContainsFunc(r.missing, func(e workspace.RootError) bool {
			return e.Path == dir.String()
		}) {
			dropped = append(dropped, text.Code(dir.String()))
		}
	}
	if len(dropped) == 0 {
		return told
	}
	lacks := "This session no longer has %s: your editor opened it without naming folders. "
	if cause == backend.Fork {
		lacks = "This copy does not have %s, unlike the original: your editor made it without " +
			"naming folders. "
	}
	return told + fmt.Sprintf(lacks+
		"/roots add brings a folder back, and acp-agent --keep-dirs keeps those of all "+
		"sessions.\n\n", strings.Join(dropped, ", "))
}

// missingFolders returns a message to the user about kept folders that could not be opened, or "".
func missingFolders(missing []workspace.RootError) string {
	var b strings.Builder
	for _, e := range missing {
		problem, _ := e.ProblemParts() // without what to do about a request
		if e.Detail != "" {
			problem += " (" + text.Printable(e.Detail) + ")"
		}
		fmt.Fprintf(&b, "This session was opened without the folder %s, which %s. "+
			"/roots add brings it back when it is there again, also under another name.\n\n",
			text.Code(e.Path), problem)
	}
	return b.String()
}
