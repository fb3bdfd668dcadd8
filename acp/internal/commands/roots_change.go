package commands

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
	"github.com/acp-agent/acp-agent/workspace"
)

// addFolders answers /roots add: it finds the folders that the argument names, checks that they can
// be opened, asks the user, opens the session again with them, and remembers what the user allowed.
func (t *turn) addFolders(argument string, readOnly bool) error {
	named, err := t.findNew(argument)
	if err != nil {
		return err
	}
	added, inFile := named.Folders, named.Path != ""
	switch {
	case len(added) == 0 && inFile:
		return t.Write(text.Code(argument) +
			" lists no folders that this session does not have.\n")
	case len(added) == 0:
		return t.Write(text.Code(argument) + " is a folder of this session already.\n")
	case inFile:
		if added, err = t.usable(added); err != nil {
			return err
		}
		if len(added) == 0 {
			return t.Write("Nothing was added.\n")
		}
	}
	roots := t.roots().Roots()
	all := roots.Additional().Strings()
	for _, dir := range added {
		all = append(all, dir.String())
	}
	if err := t.tryRoots(roots.Cwd(), all); err != nil {
		return err
	}
	answer, err := t.askToAdd(added, readOnly)
	switch {
	case errors.Is(err, backend.ErrRejected):
		return t.Write("Nothing was added.\n")
	case err != nil:
		return err
	}
	session := string(t.id)
	if answer.Always {
		session = "" // any
	}
	var allowed []consent.Consent
	for _, dir := range added {
		c := t.consentTo(dir, session)
		c.ReadOnly = readOnly
		allowed = append(allowed, c)
	}
	if err := t.session.ChangeFolders(t.ctx,
		t.session.Folders().Changed(workspace.Dir{}, allowed...)); err != nil {
		return err
	}
	for _, c := range allowed {
		if err := t.Consents.Allow(c); err != nil {
			return t.Write(fmt.Sprintf("Added %s, but only until the session is opened again: %v\n",
				listed(added), err))
		}
	}
	return t.Write("Added " + listed(added) + "." + t.clientNote() + "\n")
}

// findNew returns the folder at the argument's path, without a file, or those that the file there
// lists, if the session has such a file. Folders that the session has are left out, and the others
// have their real paths.
func (t *turn) findNew(argument string) (discovery.WorkspaceFile, error) {
	w := t.roots()
	path := w.Roots().Cwd().Locate(typedPath(argument))
	return tasks.FromDisk(t.ctx, t.Tasks, func() (named discovery.WorkspaceFile, err error) {
		if info, err := w.Stat(path); err == nil && !info.IsDir() {
			if named, err = discovery.ReadWorkspaceFile(t.ctx, w, path); err != nil {
				return named, err
			}
		} else {
			dir, err := workspace.ParseDir(path)
			if err != nil {
				return named, t.whyNot(err)
			}
			named.Folders = []workspace.Dir{dir}
		}
		var added []workspace.Dir
		for _, dir := range named.Folders {
			real := workspace.Real(dir)
			isRoot := func(r workspace.Root) bool { return r.Real == real }
			if !slices.ContainsFunc(w.Opened(), isRoot) && !slices.Contains(added, real) {
				added = append(added, real)
			}
		}
		named.Folders = added
		return named, nil
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

// usable returns those folders that can be opened, and tells the user why the others cannot.
func (t *turn) usable(folders []workspace.Dir) (usable []workspace.Dir, err error) {
	for _, dir := range folders {
		why := t.tryRoots(dir, nil)
		if why == nil {
			usable = append(usable, dir)
		} else if err := t.Write("Left out: " + text.Plain(why.Error()) + "\n\n"); err != nil {
			return nil, err
		}
	}
	return usable, t.ctx.Err()
}

// tryRoots checks that roots can be opened, before the user is asked.
func (t *turn) tryRoots(cwd workspace.Dir, additional []string) error {
	return t.Tasks.OnDisk(t.ctx, func() error {
		roots, err := workspace.NewRoots(cwd.String(), additional)
		if err != nil {
			return err
		}
		w, err := workspace.Open(t.ctx, roots, t.Workspace)
		if err != nil {
			return t.whyNot(err)
		}
		return w.Close()
	})
}

// whyNot returns the first error about folders for the user, who has just typed the path of one, so
// that its place in a list means nothing to them. It returns other errors as they are.
func (t *turn) whyNot(err error) error {
	wrong, _ := errors.AsType[workspace.RootErrors](err)
	if len(wrong) == 0 {
		return err
	}
	e := wrong[0]
	if e.Root < 0 {
		return errors.New("the new list has " + e.Problem())
	}
	problem := e.Problem()
	isRoot := func(r workspace.Root) bool { return r.Dir.String() == e.Path }
	if e.Reason == workspace.ReasonMissing &&
		slices.ContainsFunc(t.roots().Opened(), isRoot) {
		if how := t.Worktrees.Removed(e.Path); how != "" {
			problem = "does not exist: " + how
		} else if hint := listing.MoveHint(e.Path, ""); hint != "" {
			problem += "; " + hint
		}
	}
	return errors.New(text.Quote(e.Path) + " " + problem)
}

// askToAdd asks whether to add folders, which are real paths.
func (t *turn) askToAdd(added []workspace.Dir, readOnly bool) (backend.Answer, error) {
	var about strings.Builder
	for _, dir := range added {
		if what := BroadFolder(dir); what != "" {
			fmt.Fprintf(&about, "**Warning:** %s %s. If you add it, the agent and its MCP servers "+
				"reach everything in it, %s.\n\n", text.Code(dir.String()), what, BroadGrant)
		}
	}
	if readOnly {
		about.WriteString("The session, its agent and its MCP servers may read this, and change " +
			"nothing in it:")
	} else {
		about.WriteString("The session, its agent and its MCP servers get the same access to this " +
			"as to the working directory:")
	}
	q := backend.Question{
		Call: foldersCall("Add "+listed(added)+" to the session", about.String(), added),
		Once: "Add to this session", Reject: "Do not add"}
	if t.Consents.Remembers() {
		q.Always = "Add to this and later sessions in " + t.shownCwd()
	}
	return t.ask(q)
}

// removeFolder answers /roots remove: it finds the folder by its path or its label, asks the user,
// opens the session again without it, and forgets what the user allowed.
func (t *turn) removeFolder(argument string) error {
	argument = typedPath(argument)
	i, err := tasks.FromDisk(t.ctx, t.Tasks,
		func() (int, error) { return t.findRoot(argument), nil })
	switch {
	case err != nil:
		return err
	case i < 0:
		return t.Write(text.Code(argument) +
			" is not a folder of this session. Type `/roots` to see them.\n")
	case i == 0:
		return t.Write("The working directory of a session cannot be removed.\n")
	}
	dir := t.roots().Root(i).Dir
	shown := text.Code(dir.String())
	always := t.consentTo(dir, "").ID
	known, knownErr := t.Consents.Has(always)
	q := backend.Question{
		Call: foldersCall("Remove "+shown+" from the session",
			"The session, its agent and its MCP servers lose this folder:", []workspace.Dir{dir}),
		Once: "Remove from this session", Reject: "Keep it"}
	if knownErr == nil && known {
		q.Always = "Remove from this and later sessions in " + t.shownCwd()
	}
	answer, err := t.ask(q)
	if errors.Is(err, backend.ErrRejected) {
		return t.Write("Nothing was removed.\n")
	}
	if err != nil {
		return err
	}
	if err := t.session.ChangeFolders(t.ctx, t.session.Folders().Changed(dir)); err != nil {
		return err
	}
	err = t.Consents.Forget(t.consentTo(dir, string(t.id)).ID)
	if answer.Always {
		err = errors.Join(err, t.Consents.Forget(always))
	}
	if err != nil {
		return t.Write(fmt.Sprintf("Removed %s, but only until the session is opened again: %v\n",
			shown, err))
	}
	note := t.clientNote()
	if by := t.session.Declared(t.ctx, dir); note == "" && by != "" {
		note = fmt.Sprintf(
			" A session that your editor opens without naming folders gets it again, "+
				"because of %s.", text.Printable(by))
	}
	return t.Write("Removed " + shown + "." + note + "\n")
}

// findRoot returns the index of the root that the argument names, or -1.
func (t *turn) findRoot(argument string) int {
	w := t.roots()
	dir, err := workspace.ParseDir(w.Roots().Cwd().Locate(argument))
	i := slices.IndexFunc(w.Opened(), func(r workspace.Root) bool { return r.Dir == dir })
	if err == nil && i < 0 {
		real := workspace.Real(dir)
		i = slices.IndexFunc(w.Opened(), func(r workspace.Root) bool { return r.Real == real })
	}
	if i < 0 {
		i = slices.Index(w.Labels(), argument)
	}
	return i
}

// consentTo returns the consent to give a folder to a session, or to all sessions in the working
// directory if its id is "".
func (t *turn) consentTo(dir workspace.Dir, session string) consent.Consent {
	return consent.ForFolder(t.roots().Root(0).Real, dir, session)
}

// clientNote returns a note for the answer after the folders have changed, if the client names
// them, or "".
func (t *turn) clientNote() string {
	if !t.session.Folders().Listed() {
		return ""
	}
	return " Your editor names the folders of this session itself: " +
		"when it opens the session again, it uses its own list."
}

// listed returns folders for a sentence.
func listed(dirs []workspace.Dir) string {
	return text.JoinFunc(dirs, ", ", func(dir workspace.Dir) string {
		return text.Code(dir.String())
	})
}

// foldersCall returns what a question about folders shows, with the whole path of each.
func foldersCall(title, about string, folders []workspace.Dir) backend.ToolCall {
	paths := text.JoinFunc(folders, "\n", func(dir workspace.Dir) string {
		return text.Printable(dir.String())
	})
	return backend.NewToolCall("roots", sdk.ToolKindOther, title,
		about+"\n\n"+text.Block("", paths))
}

// shownCwd returns the working directory for a sentence.
func (t *turn) shownCwd() string {
	return text.Printable(t.roots().Roots().Cwd().String())
}
