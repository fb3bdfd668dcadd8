package acp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// The adapter answers the slash command /roots itself, whatever backend a session has: it shows the
// session's folders, and adds or removes one. A change asks the user, and then opens the session
// again with the new list, as a session/resume does, but within the turn of the prompt.

// rootsEntry is the command as it is announced.
var rootsEntry = sync.OnceValue(func() json.RawMessage {
	return backend.Encode(backend.NewCommand(backend.RootsCommand, "Show the session's folders, or add or remove one; asks first",
		"[add DIR | remove DIR]"))
})

const rootsUsage = "Type `/roots` to see the folders of this session, `/roots add DIR` to add one, or `/roots remove DIR` to remove one. " +
	"A relative DIR starts at the working directory, and `~` is your home directory. " +
	"`/roots add FILE` adds the folders that a file lists: *.code-workspace, go.work, pnpm-workspace.yaml or package.json.\n"

// announceRoots returns an announcement of commands with /roots. A backend's command of this name
// is left out.
func announceRoots(u backend.Update) backend.Update {
	if u.Kind != sessionstore.AvailableCommandsUpdate {
		return u
	}
	const member = "availableCommands"
	list := strictjson.Find(u.Raw, "update", member)
	if mayHaveRoots(list) {
		list = withoutRoots(list)
	}
	list, ok := strictjson.Append(list, rootsEntry())
	if !ok {
		return u
	}
	u.Raw = strictjson.Set(u.Raw, "update", strictjson.Set(strictjson.Find(u.Raw, "update"), member, list))
	return u
}

// mayHaveRoots reports whether there may be a command of this name in a list. It does not parse the
// list, because most have none.
func mayHaveRoots(list json.RawMessage) bool {
	return slices.ContainsFunc([]string{`"` + backend.RootsCommand + `"`, `/` + backend.RootsCommand + `"`, `\u`}, func(s string) bool {
		return bytes.Contains(list, []byte(s))
	})
}

// withoutRoots returns a list of commands without those of this name.
func withoutRoots(list json.RawMessage) json.RawMessage {
	var commands []json.RawMessage
	if json.Unmarshal(list, &commands) != nil {
		return list
	}
	others := slices.DeleteFunc(slices.Clone(commands), func(c json.RawMessage) bool {
		var name string
		return json.Unmarshal(strictjson.Find(c, "name"), &name) == nil && strings.TrimPrefix(name, "/") == backend.RootsCommand
	})
	if len(others) == len(commands) {
		return list
	}
	list, _ = strictjson.Append(nil, others...)
	return list
}

// announceCommands announces /roots for a backend that has announced no commands, neither now nor
// before.
func (h *host) announceCommands() {
	if h.bufferedKinds()[sessionstore.AvailableCommandsUpdate] {
		return
	}
	states, err := h.agent.options.Store.States(h.agent.base, h.id)
	if err != nil {
		h.agent.log.Debug("reading the announced commands", "session", h.id, "error", err)
		return
	}
	if slices.ContainsFunc(states, func(u sessionstore.Update) bool { return u.Kind == sessionstore.AvailableCommandsUpdate }) {
		return
	}
	_, _ = h.buffer(announceRoots(backend.NewUpdate(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{
		AvailableCommands: []sdk.AvailableCommand{},
	}})))
}

// rootsCall is a call of /roots.
type rootsCall struct {
	verb     string // "add", "remove", or "" to show the folders
	argument string
}

// parseRootsCall returns the call of /roots in the params of a prompt, if there is one.
func parseRootsCall(params backend.Raw) (call rootsCall, ok bool) {
	slash := prompts.ParseCommand(params)
	if slash.Name != backend.RootsCommand {
		return rootsCall{}, false
	}
	_, rest := text.CutWord(strings.TrimSpace(slash.Block.Text)) // blocks after it may be an editor's
	call.verb, call.argument = text.CutWord(rest)
	return call, true
}

// rootsTurn is the turn of a call of /roots.
type rootsTurn struct {
	*turn
	agent   *agent
	session *session // the active one
	updates *turnUpdates
}

// answerRoots runs a call of /roots. An error of the call is part of the answer.
func (a *agent) answerRoots(t *turn, updates *turnUpdates, call rootsCall) (backend.Raw, error) {
	r := &rootsTurn{turn: t, agent: a, session: updates.session, updates: updates}
	var err error
	switch {
	case call.verb == "":
		err = r.show()
	case call.verb == "add" && call.argument != "":
		err = r.add(call.argument)
	case call.verb == "remove" && call.argument != "":
		err = r.remove(call.argument)
	default:
		err = r.say(rootsUsage)
	}
	switch {
	case err == nil:
		return backend.Stopped(sdk.StopReasonEndTurn), nil
	case t.ctx.Err() != nil:
		return nil, context.Cause(t.ctx)
	case errors.Is(err, backend.ErrCancelled): // the client cancelled the question
		return backend.Stopped(sdk.StopReasonCancelled), nil
	}
	if err := r.say("The folders of this session stay as they are: " + text.Plain(protocolError(err).Error()) + "\n"); err != nil {
		return nil, err
	}
	return backend.Stopped(sdk.StopReasonEndTurn), nil
}

func (r *rootsTurn) say(markdown string) error {
	return r.updates.Update(r.ctx, backend.Text(markdown))
}

// path shows a path.
func shownPath(dir workspace.Dir) string { return text.Code(text.Printable(dir.String())) }

// show answers /roots.
func (r *rootsTurn) show() error {
	var b strings.Builder
	w, labels := r.session.workspace, r.session.workspace.Labels()
	folders := foldersByDir(r.session.params.additional())
	for i, root := range w.Opened() {
		var state workspace.State
		err := r.agent.onDisk(r.ctx, func() (err error) {
			state, err = w.State(i)
			return err
		}, nil)
		if err != nil {
			return err
		}
		role, from := "", folders[root.Dir].Setting
		if i == 0 {
			role, from = ", the working directory: relative paths start here", clientSetting
		}
		fmt.Fprintf(&b, "Root %d: **%s**%s\n\n- path: %s\n- real path: %s\n- URI: %s\n- from: %s\n- state: %s\n\n", i, text.Code(labels[i]), role,
			text.Code(root.Dir.String()), text.Code(root.Real.String()), text.Code(root.Real.URI()), text.Printable(from), describeState(state))
	}
	if r.agent.init.mcpOwner() == backend.BackendConnects {
		return r.say(b.String())
	}
	servers := r.session.servers.tools().Servers()
	if len(servers) == 0 {
		b.WriteString("MCP servers: none\n")
	} else {
		b.WriteString("MCP servers:\n\n")
	}
	for _, s := range servers {
		fmt.Fprintf(&b, "- %s (%s): %s\n", text.Code(s.Name), s.Transport, s.State)
	}
	return r.say(b.String())
}

func describeState(state workspace.State) string {
	switch state {
	case workspace.OK:
		return "ok"
	case workspace.Moved:
		return "moved: the directory has another path now; the session still uses it"
	case workspace.Replaced:
		return "replaced: the path names another directory now; the session still uses the original one"
	case workspace.Missing:
		return "missing: the directory has been deleted"
	case workspace.Unreachable:
		return "unreachable: the path cannot be looked up"
	default:
		return string(state)
	}
}

// realCwd returns the real path of the session's working directory, for which consents are given.
func (r *rootsTurn) realCwd() workspace.Dir { return r.session.workspace.Opened()[0].Real }

// add adds the folders that the argument names.
func (r *rootsTurn) add(argument string) error {
	named, err := r.namedFolders(argument)
	if err != nil {
		return err
	}
	added, err := r.newFolders(named.paths)
	if err != nil {
		return err
	}
	if len(added) == 0 {
		return r.say(text.Code(argument) + named.known)
	}
	consents := func(session string) []consent.Consent {
		var all []consent.Consent
		for _, dir := range added {
			all = append(all, consent.ForFolder(r.realCwd(), dir, session))
		}
		return all
	}
	with := func(all []consent.Consent) (sessionParams, error) {
		folders := r.session.params.additional()
		for _, c := range all {
			folders = append(folders, addedFolder(c))
		}
		return r.params(folders)
	}
	allowed := consents(string(r.session.id))
	next, err := with(allowed)
	if err != nil {
		return err
	}
	if err := r.try(next); err != nil {
		return err
	}
	offers := []backend.Offer{{Answer: backend.AllowOnce, Label: "Add to this session"}}
	if r.agent.consents().Remembers() {
		offers = append(offers, backend.Offer{Answer: backend.AllowAlways, Label: "Add to this and later sessions in " + text.Printable(r.session.params.roots.Cwd().String())})
	}
	offers = append(offers, backend.Offer{Answer: backend.RejectOnce, Label: "Do not add"})
	answer, err := r.ask("Add "+listed(added)+" to the session", "The session, its agent and its MCP servers get the same access to this as to the working directory:",
		added, offers)
	switch {
	case err != nil:
		return err
	case answer == backend.RejectOnce:
		return r.say("Nothing was added.\n")
	case answer == backend.AllowAlways:
		allowed = consents("")
		if next, err = with(allowed); err != nil {
			return err
		}
	}
	if err := r.reopen(next); err != nil {
		return err
	}
	for _, c := range allowed {
		if err := r.agent.consents().Allow(c); err != nil {
			return r.say(fmt.Sprintf("Added %s, but only until the session is opened again: %v\n", listed(added), err))
		}
	}
	return r.say("Added " + listed(added) + "." + r.listCounts() + "\n")
}

// namedFolders are the folders that an argument of /roots add names.
type namedFolders struct {
	paths []string
	known string // what to say about the argument if the session has them all
}

// namedFolders returns the folder at the argument's path, or those that the file there lists, if
// the session has such a file.
func (r *rootsTurn) namedFolders(argument string) (namedFolders, error) {
	path := r.session.params.roots.Cwd().Locate(unquoted(argument))
	var named namedFolders
	err := r.agent.onDisk(r.ctx, func() error {
		info, err := r.session.workspace.Stat(path)
		if err != nil || info.IsDir() {
			named = namedFolders{[]string{path}, " is a folder of this session already.\n"}
			return nil
		}
		file, err := discovery.ReadWorkspaceFile(r.ctx, r.session.workspace, path)
		named.known = " lists no folders that this session does not have.\n"
		for _, dir := range file.Folders {
			named.paths = append(named.paths, dir.String())
		}
		return err
	}, nil)
	if err != nil {
		return namedFolders{}, err // what reads the file may still be running
	}
	return named, nil
}

// unquoted returns an argument without quotes around it.
func unquoted(argument string) string {
	if n := len(argument); n > 1 && (argument[0] == '"' || argument[0] == '\'') && argument[n-1] == argument[0] {
		return argument[1 : n-1]
	}
	return argument
}

// newFolders returns the real paths of those folders that the session does not have yet.
func (r *rootsTurn) newFolders(paths []string) ([]workspace.Dir, error) {
	dirs, err := workspace.ParseDirs(paths)
	if wrong := rootViolations(err); wrong != nil {
		return nil, namelessViolation(wrong[0])
	}
	var added []workspace.Dir
	err = r.agent.onDisk(r.ctx, func() error {
		for _, dir := range dirs.All() {
			real := workspace.Real(dir)
			isRoot := slices.ContainsFunc(r.session.workspace.Opened(), func(root workspace.Root) bool { return root.Real == real })
			if !isRoot && !slices.Contains(added, real) {
				added = append(added, real)
			}
		}
		return nil
	}, nil)
	return added, err
}

// namelessViolation returns a violation as an error that does not name the field or setting: the
// user has just typed the path.
func namelessViolation(v strictjson.Violation) error {
	v.Field, v.Index = "", nil
	if len(v.Value) == 0 {
		v.Field = "the new list"
	}
	return errors.New(strings.TrimSpace(v.String()))
}

// params returns the params with which the session is opened again, with other additional roots.
func (r *rootsTurn) params(folders []Folder) (sessionParams, error) {
	p := r.session.params
	p.id = r.session.id
	err := p.setFolders(folders)
	return p, err
}

// try checks that the roots can be opened, before the user is asked.
func (r *rootsTurn) try(p sessionParams) error {
	return r.agent.onDisk(r.ctx, func() error {
		w, err := workspace.Open(r.ctx, p.roots, r.agent.options.Workspace)
		if wrong := p.rootViolations(err); wrong != nil {
			hintMoves(wrong[:1], r.isRoot)
			return namelessViolation(wrong[0])
		}
		if err != nil {
			return err
		}
		return w.Close()
	}, nil)
}

// isRoot reports whether path is a folder of the session.
func (r *rootsTurn) isRoot(_ strictjson.Violation, path string) bool {
	for _, dir := range r.session.params.roots.All() {
		if dir.String() == path {
			return true
		}
	}
	return false
}

// remove removes a folder, named by its path or its label.
func (r *rootsTurn) remove(argument string) error {
	argument = unquoted(argument)
	var i int
	err := r.agent.onDisk(r.ctx, func() error {
		i = r.find(argument)
		return nil
	}, nil)
	switch {
	case err != nil:
		return err
	case i < 0:
		return r.say(text.Code(argument) + " is not a folder of this session. Type `/roots` to see them.\n")
	case i == 0:
		return r.say("The working directory of a session cannot be removed.\n")
	}
	dir := r.session.workspace.Opened()[i].Dir
	folders := r.session.params.additional()
	at := slices.IndexFunc(folders, func(f Folder) bool { return f.Path == dir.String() })
	removed := folders[at]
	next, err := r.params(slices.Delete(folders, at, at+1))
	if err != nil {
		return err
	}
	always := consent.ForFolder(r.realCwd(), dir, "")
	offers := []backend.Offer{{Answer: backend.AllowOnce, Label: "Remove from this session"}}
	if known, err := r.agent.consents().Has(always.ID); err == nil && known {
		offers = append(offers, backend.Offer{Answer: backend.AllowAlways, Label: "Remove from this and later sessions in " + text.Printable(r.session.params.roots.Cwd().String())})
	}
	offers = append(offers, backend.Offer{Answer: backend.RejectOnce, Label: "Keep it"})
	answer, err := r.ask("Remove "+shownPath(dir)+" from the session", "The session, its agent and its MCP servers lose this folder:", []workspace.Dir{dir}, offers)
	switch {
	case err != nil:
		return err
	case answer == backend.RejectOnce:
		return r.say("Nothing was removed.\n")
	}
	if err := r.reopen(next); err != nil {
		return err
	}
	err = r.agent.consents().Forget(consent.ForFolder(r.realCwd(), dir, string(r.session.id)).ID)
	if answer == backend.AllowAlways {
		err = errors.Join(err, r.agent.consents().Forget(always.ID))
	}
	if err != nil {
		return r.say(fmt.Sprintf("Removed %s, but only until the session is opened again: %v\n", shownPath(dir), err))
	}
	again := r.listCounts()
	if again == "" && r.isDeclared(dir) {
		again = fmt.Sprintf(" A session that your editor opens without naming folders gets it again, because of %s.", text.Printable(removed.Setting))
	}
	return r.say("Removed " + shownPath(dir) + "." + again + "\n")
}

// find returns the index of the root that the argument names, or -1.
func (r *rootsTurn) find(argument string) int {
	w := r.session.workspace
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

// isDeclared reports whether a request that leaves additionalDirectories out would bring the folder
// back.
func (r *rootsTurn) isDeclared(dir workspace.Dir) bool {
	var folders []Folder
	err := r.agent.onDisk(r.ctx, func() (err error) {
		folders, err = r.agent.declaredFolders(r.session.params.roots.Cwd(), string(r.session.id))
		return err
	}, nil)
	_, declared := foldersByDir(folders)[dir]
	return err == nil && declared && !r.agent.options.KeepFolders
}

// listCounts returns what to say after a change of the folders of a session for which the client
// has sent a list, "" for others.
func (r *rootsTurn) listCounts() string {
	if !r.session.params.listed {
		return ""
	}
	return " Your editor names the folders of this session itself: when it opens the session again, its list counts."
}

// listed returns folders for a sentence.
func listed(dirs []workspace.Dir) string {
	shown := make([]string, len(dirs))
	for i, dir := range dirs {
		shown[i] = shownPath(dir)
	}
	return strings.Join(shown, ", ")
}

// ask asks the user about folders, each of which is shown with its whole path.
func (r *rootsTurn) ask(title, about string, dirs []workspace.Dir, offers []backend.Offer) (backend.Answer, error) {
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, text.Printable(dir.String()))
	}
	id := sdk.ToolCallId("roots-" + rand.Text()[:16])
	shown := sdk.ToolCallUpdate{
		ToolCallId: id, Kind: sdk.Ptr(sdk.ToolKindOther), Status: sdk.Ptr(sdk.ToolCallStatusPending),
		Title: sdk.Ptr(title), Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(about + "\n\n" + text.Block("", strings.Join(paths, "\n"))))},
	}
	answer, err := backend.Question{ToolCall: backend.Encode(shown), Offers: offers}.Ask(r.ctx, r.session.host)
	status := sdk.ToolCallStatusCompleted
	switch {
	case err != nil:
		return answer, err
	case answer == backend.Cancelled:
		return answer, backend.ErrCancelled
	case answer == backend.RejectOnce:
		status = sdk.ToolCallStatusFailed
	}
	return answer, r.updates.Update(r.ctx, backend.NewUpdate(sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status))))
}

// reopen opens the session with other params in place of the active one. Requests that arrive
// meanwhile wait. It fails only if the session stays as it is.
func (r *rootsTurn) reopen(p sessionParams) error {
	a := r.agent
	at := a.queues.ticket(r.session.id, callRequest)
	defer at.release()
	if err := at.acquire(r.ctx); err != nil {
		return err
	}
	stored, err := a.stored(r.ctx, r.session.id)
	if err != nil {
		return err
	}
	l := &load{agent: a, at: at, cause: backend.Resume, params: p, inTurn: true, stored: openable{Session: stored}, previous: r.session}
	s, act, err := l.replace(r.ctx)
	if err != nil {
		return err
	}
	r.session = s
	r.updates.moveTo(s)
	shown := s.host.bufferedKinds()
	ctx := context.WithoutCancel(r.ctx) // also if the turn was cancelled meanwhile
	s.host.release(ctx)
	var news []backend.Update
	if l.notice != "" {
		news = append(news, backend.Text(l.notice))
	}
	for _, u := range statesIn(act.opened.Result) {
		if !shown[u.Kind] {
			news = append(news, u)
		}
	}
	for _, u := range news {
		if err := r.updates.Update(ctx, u); err != nil {
			a.log.Debug("update not sent", "session", s.id, "error", err)
		}
	}
	return nil
}

// statesIn returns what a lifecycle response says of the session's mode and options as updates, for
// a client that does not get the response.
func statesIn(result backend.Raw) []backend.Update {
	var r struct {
		Modes         struct{ CurrentModeID json.RawMessage }
		ConfigOptions json.RawMessage
	}
	if json.Unmarshal(result, &r) != nil {
		return nil
	}
	var updates []backend.Update
	add := func(kind sessionstore.Kind, member string, value json.RawMessage) {
		if len(value) > 0 && string(value) != "null" {
			inner := strictjson.Set(strictjson.Set(nil, "sessionUpdate", quote(string(kind))), member, value)
			updates = append(updates, backend.Update{Kind: kind, Raw: strictjson.Set(nil, "update", inner)})
		}
	}
	add(sessionstore.CurrentModeUpdate, "currentModeId", r.Modes.CurrentModeID)
	add(sessionstore.ConfigOptionUpdate, "configOptions", r.ConfigOptions)
	return updates
}
