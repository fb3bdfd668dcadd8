package acp

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// realCwd returns the real path of the session's working directory, for which consents are given.
func (o *ownTurn) realCwd() workspace.Dir { return o.session.workspace.Opened()[0].Real }

// addFolders adds the folders that the argument names, perhaps to be read only.
func (o *ownTurn) addFolders(argument string, readOnly bool) error {
	named, err := o.namedFolders(argument)
	if err != nil {
		return err
	}
	added, err := o.newFolders(named.paths)
	if err != nil {
		return err
	}
	if len(added) == 0 {
		return o.Write(text.Code(argument) + named.known)
	}
	if named.inFile {
		usable, err := o.usableFolders(added)
		if err != nil {
			return err
		}
		if len(usable) == 0 {
			return o.Write("Nothing was added.\n")
		}
		added = usable
	}
	allowed, next, err := o.withFolders(added, string(o.session.storeID), readOnly)
	if err != nil {
		return err
	}
	if err := o.tryRoots(next); err != nil {
		return err
	}
	access := "The session, its agent and its MCP servers get the same access to this as to the " +
		"working directory:"
	if readOnly {
		access = "The session, its agent and its MCP servers may read this, and change nothing in it:"
	}
	q := backend.Question{
		Call: foldersCall("Add "+listed(added)+" to the session", o.broadWarning(added)+access, added),
		Once: "Add to this session", Reject: "Do not add"}
	if o.agent.consents().Remembers() {
		q.Always = "Add to this and later sessions in " + o.shownCwd()
	}
	answer, err := o.ask(q)
	switch {
	case errors.Is(err, backend.ErrRejected):
		return o.Write("Nothing was added.\n")
	case err != nil:
		return err
	case answer.Always:
		if allowed, next, err = o.withFolders(added, "", readOnly); err != nil {
			return err
		}
	}
	if err := o.reopen(next); err != nil {
		return err
	}
	for _, c := range allowed {
		if err := o.agent.consents().Allow(c); err != nil {
			return o.Write(fmt.Sprintf("Added %s, but only until the session is opened again: %v\n",
				listed(added), err))
		}
	}
	return o.Write("Added " + listed(added) + "." + o.listNote() + "\n")
}

// broadWarning returns a warning for the question about folders, which are real paths, if one has
// far more in it than a project, or "".
func (o *ownTurn) broadWarning(dirs []workspace.Dir) string {
	var b strings.Builder
	for _, dir := range dirs {
		if what := broadDir(dir, o.agent.homeDir()); what != "" {
			fmt.Fprintf(&b, "**Warning:** %s %s. If you add it, the agent and its MCP servers "+
				"reach everything in it, %s.\n\n", shownPath(dir), what, broadGrant)
		}
	}
	return b.String()
}

// withFolders returns the user's consents to more folders, for one session or, if its id is "", for
// all with the same working directory, and the params with which the session is opened again.
func (o *ownTurn) withFolders(
	dirs []workspace.Dir, id string, readOnly bool,
) (allowed []consent.Consent, next sessionParams, err error) {
	next = o.session.params
	folders := next.additional()
	for _, dir := range dirs {
		c := consent.ForFolder(o.realCwd(), dir, id)
		c.ReadOnly = readOnly
		allowed, folders = append(allowed, c), append(folders, addedFolder(c))
	}
	return allowed, next, next.setFolders(folders)
}

// namedFolders holds the folders that the argument of /roots add names.
type namedFolders struct {
	paths  []string
	known  string // what to say about the argument if the session has them all
	inFile bool   // a file lists them
}

// namedFolders returns the folder at the argument's path, or those that the file there lists, if
// the session has such a file.
func (o *ownTurn) namedFolders(argument string) (namedFolders, error) {
	path := o.session.params.roots.Cwd().Locate(typedPath(argument))
	return tasks.FromDisk(o.ctx, o.agent.tasks, func() (namedFolders, error) {
		info, err := o.session.workspace.Stat(path)
		if err != nil || info.IsDir() {
			return namedFolders{paths: []string{path},
				known: " is a folder of this session already.\n"}, nil
		}
		file, err := discovery.ReadWorkspaceFile(o.ctx, o.session.Workspace(), path)
		named := namedFolders{known: " lists no folders that this session does not have.\n",
			inFile: true}
		for _, dir := range file.Folders {
			named.paths = append(named.paths, dir.String())
		}
		return named, err
	})
}

// typedPath returns the path that an argument is: it may be in quotes, be a file URI, or have
// backslashes before its spaces, as paths have that are dropped on a terminal.
func typedPath(argument string) string {
	if n := len(argument); n > 1 && (argument[0] == '"' || argument[0] == '\'') &&
		argument[n-1] == argument[0] {
		return argument[1 : n-1]
	}
	if path, _, err := prompts.FilePath(argument); err == nil {
		return path
	}
	if filepath.Separator == '/' {
		return strings.ReplaceAll(argument, `\ `, " ")
	}
	return argument
}

// newFolders returns the real paths of those folders that the session does not have yet.
func (o *ownTurn) newFolders(paths []string) ([]workspace.Dir, error) {
	dirs, err := workspace.ParseDirs(paths)
	if wrong := rootViolations(err); wrong != nil {
		return nil, namelessViolation(wrong[0])
	}
	return tasks.FromDisk(o.ctx, o.agent.tasks, func() (added []workspace.Dir, err error) {
		for _, dir := range dirs.All() {
			real := workspace.Real(dir)
			isRoot := slices.ContainsFunc(o.session.workspace.Opened(),
				func(root workspace.Root) bool {
					return root.Real == real
				})
			if !isRoot && !slices.Contains(added, real) {
				added = append(added, real)
			}
		}
		return added, nil
	})
}

// usableFolders returns those folders that can be opened, and tells the user why the others cannot.
func (o *ownTurn) usableFolders(folders []workspace.Dir) (usable []workspace.Dir, err error) {
	for _, dir := range folders {
		alone := sessionParams{roots: workspace.RootsFrom(dir, workspace.Dirs{})}
		why := o.tryRoots(alone)
		if why == nil {
			usable = append(usable, dir)
		} else if err := o.Write("Left out: " + text.Plain(why.Error()) + "\n\n"); err != nil {
			return nil, err
		}
	}
	return usable, o.ctx.Err()
}

// namelessViolation returns a violation as an error without the name of the field or setting,
// because the user has just typed the path.
func namelessViolation(v strictjson.Violation) error {
	v.Field, v.Index = "", nil
	if len(v.Value) == 0 {
		v.Field = "the new list"
	}
	return errors.New(strings.TrimSpace(v.String()))
}

// tryRoots checks that the roots can be opened, before the user is asked.
func (o *ownTurn) tryRoots(p sessionParams) error {
	return o.agent.tasks.OnDisk(o.ctx, func() error {
		w, err := workspace.Open(o.ctx, p.roots, o.agent.options.Workspace)
		if wrong := p.rootViolations(err); wrong != nil {
			listing.HintMoves(wrong[:1], func(_ strictjson.Violation, path string) bool {
				for _, dir := range o.session.params.roots.All() {
					if dir.String() == path {
						return true
					}
				}
				return false
			}, o.agent.removedWorktree)
			return namelessViolation(wrong[0])
		}
		if err != nil {
			return err
		}
		return w.Close()
	})
}

// removeFolder removes a folder, named by its path or its label.
func (o *ownTurn) removeFolder(argument string) error {
	argument = typedPath(argument)
	i, err := tasks.FromDisk(o.ctx, o.agent.tasks,
		func() (int, error) { return o.findRoot(argument), nil })
	switch {
	case err != nil:
		return err
	case i < 0:
		return o.Write(text.Code(argument) +
			" is not a folder of this session. Type `/roots` to see them.\n")
	case i == 0:
		return o.Write("The working directory of a session cannot be removed.\n")
	}
	dir := o.session.workspace.Opened()[i].Dir
	folders := o.session.params.additional()
	at := slices.IndexFunc(folders, func(f Folder) bool { return f.Path == dir.String() })
	removed, next := folders[at], o.session.params
	if err := next.setFolders(slices.Delete(folders, at, at+1)); err != nil {
		return err
	}
	always := consent.ForFolder(o.realCwd(), dir, "")
	known, knownErr := o.agent.consents().Has(always.ID)
	q := backend.Question{
		Call: foldersCall("Remove "+shownPath(dir)+" from the session",
			"The session, its agent and its MCP servers lose this folder:", []workspace.Dir{dir}),
		Once: "Remove from this session", Reject: "Keep it"}
	if knownErr == nil && known {
		q.Always = "Remove from this and later sessions in " + o.shownCwd()
	}
	answer, err := o.ask(q)
	if errors.Is(err, backend.ErrRejected) {
		return o.Write("Nothing was removed.\n")
	}
	if err != nil {
		return err
	}
	if err := o.reopen(next); err != nil {
		return err
	}
	err = o.agent.consents().Forget(consent.ForFolder(o.realCwd(), dir, string(o.session.storeID)).ID)
	if answer.Always {
		err = errors.Join(err, o.agent.consents().Forget(always.ID))
	}
	if err != nil {
		return o.Write(fmt.Sprintf("Removed %s, but only until the session is opened again: %v\n",
			shownPath(dir), err))
	}
	note := o.listNote()
	if note == "" && o.isDeclared(dir) {
		note = fmt.Sprintf(
			" A session that your editor opens without naming folders gets it again, "+
				"because of %s.", text.Printable(removed.Setting))
	}
	return o.Write("Removed " + shownPath(dir) + "." + note + "\n")
}

// findRoot returns the index of the root that the argument names, or -1.
func (o *ownTurn) findRoot(argument string) int {
	w := o.session.workspace
	dir, err := workspace.ParseDir(w.Roots().Cwd().Locate(argument))
	if err == nil {
		real := workspace.Real(dir)
		for _, same := range []func(workspace.Root) bool{
			func(root workspace.Root) bool { return root.Dir == dir },
			func(root workspace.Root) bool { return root.Real == real },
		} {
			if i := slices.IndexFunc(w.Opened(), same); i >= 0 {
				return i
			}
		}
	}
	return slices.Index(w.Labels(), argument)
}

// isDeclared reports whether a later request without additionalDirectories would add the folder
// again.
func (o *ownTurn) isDeclared(dir workspace.Dir) bool {
	folders, err := o.agent.declaredFolders(o.ctx, o.session.params.roots.Cwd(), o.session.storeID)
	_, declared := foldersByDir(folders)[dir]
	return err == nil && declared && !o.agent.options.KeepFolders
}

// listNote returns a note for the answer after the folders have changed, if the client sent a list
// of folders for the session, or "".
func (o *ownTurn) listNote() string {
	if !o.session.params.listed {
		return ""
	}
	return " Your editor names the folders of this session itself: " +
		"when it opens the session again, it uses its own list."
}

// listed returns folders for a sentence.
func listed(dirs []workspace.Dir) string {
	shown := make([]string, len(dirs))
	for i, dir := range dirs {
		shown[i] = shownPath(dir)
	}
	return strings.Join(shown, ", ")
}

// foldersCall returns what a question about folders shows, with the whole path of each.
func foldersCall(title, about string, folders []workspace.Dir) backend.ToolCall {
	var paths []string
	for _, dir := range folders {
		paths = append(paths, text.Printable(dir.String()))
	}
	return backend.NewToolCall("roots", sdk.ToolKindOther, title,
		about+"\n\n"+text.Block("", strings.Join(paths, "\n")))
}

// shownCwd returns the working directory for a sentence.
func (o *ownTurn) shownCwd() string { return text.Printable(o.session.params.roots.Cwd().String()) }
