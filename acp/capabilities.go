package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// clientCapabilities holds what a client declared in initialize, and other facts about it. The zero
// value is that of a client that declared nothing.
type clientCapabilities struct {
	name     string          // for users, of an unknown one clientSetting
	declared map[string]bool // known capabilities, by path
	unknown  bool            // it declared others
	// unlimited means that the client is among unlimitedClients.
	unlimited bool
	// relabels means that it shows its own labels for options, so that a person would not see what
	// is remembered.
	relabels bool
	// terminalOutput means that it shows terminals of Claude Code, which are not its own.
	terminalOutput bool
	// terminalSignIn means that it can start the program in a terminal to sign in.
	terminalSignIn bool
}

// declares reports whether the client declared the capability with this path. A member that is not
// valid counts as not declared.
func (c *clientCapabilities) declares(path string) bool { return c.declared[path] }

// elicitationModes returns "form" and "url" if the client declared them.
func (c *clientCapabilities) elicitationModes() (modes []string) {
	for _, mode := range []string{"form", "url"} {
		if c.declares(protocol.Elicitation + "." + mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

func readClientCapabilities(params json.RawMessage) clientCapabilities {
	raw := strictjson.Find(params, "clientCapabilities")
	c := clientCapabilities{declared: make(map[string]bool)}
	known := map[string]bool{"": true}
	for _, capability := range protocol.ClientCapabilities() {
		known[capability.Path] = true
		value := strictjson.Find(raw, strings.Split(capability.Path, ".")...)
		c.declared[capability.Path] =
			capability.Flag && isTrue(value) || !capability.Flag && strictjson.IsObject(value)
	}
	ends, _ := sessionstore.TurnEndUpdate.Needs()
	c.declared[ends] = isTrue(strictjson.Find(raw, strings.Split(ends, ".")...))
	c.unknown = hasUnknown(raw, "", known)
	name := strictjson.FindText(params, "clientInfo", "name")
	title := strictjson.FindText(params, "clientInfo", "title")
	c.name = text.Name(cmp.Or(title, name, clientSetting))
	c.unlimited, c.relabels = isUnlimited(name), name == "CodeCompanion.nvim"
	c.terminalOutput = isTrue(strictjson.Find(raw, "_meta", "terminal_output"))
	c.terminalSignIn = c.declares(protocol.TerminalSignIn) ||
		isTrue(strictjson.Find(raw, "_meta", "terminal-auth")) // before it was standard
	return c
}

// hasUnknown reports whether the capability with this path has members that declare others than the
// known ones.
func hasUnknown(raw json.RawMessage, path string, known map[string]bool) bool {
	for name, value := range members(raw) {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case name == "_meta":
		case known[at]:
			if hasUnknown(value, at, known) {
				return true
			}
		case isTrue(value) || strictjson.IsObject(value):
			return true
		}
	}
	return false
}

// clientCapabilities returns what the client declared.
func (c *connection) clientCapabilities() *clientCapabilities { return &c.agent.info().client }

// checkMethod rejects a request to the client for a method, or a mode of elicitation, that the
// client did not advertise, or for a child session if it did not advertise these.
func (to *connection) checkMethod(method string, params backend.Raw) error {
	c := to.clientCapabilities()
	switch {
	case namesChild(params) && !c.declares(protocol.Subagents):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
			"the client does not offer %s for subagents", method)
	case method == protocol.SessionUpdate:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "send %s with Update, so that it is recorded",
			method)
	case protocol.IsRefused(method),
		method == protocol.ReadTextFile && !c.declares(protocol.FileReads),
		method == protocol.WriteTextFile && !c.declares(protocol.FileWrites),
		strings.HasPrefix(method, protocol.TerminalPrefix) && !c.declares(protocol.Terminals),
		strings.HasPrefix(method, protocol.ElicitationPrefix) && !c.declares(protocol.Elicitation):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not offer %s", method)
	case method == protocol.ElicitationCreate:
		var mode string // the last, as clients read it
		_ = json.Unmarshal(members(params)["mode"], &mode)
		if (mode == "form" || mode == "url") && !slices.Contains(c.elicitationModes(), mode) {
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
				"the client does not offer %s with mode %s", method, mode)
		}
	}
	return nil
}

// checkPaths rejects a request to the client whose path does not lead to a file or directory that
// the session may use, or now points somewhere else. This holds at the time of the check: what the
// client then opens is up to the client.
func checkPaths(w *workspace.Workspace, method string, params backend.Raw) error {
	name, handOver := "path", w.HandOverFile
	switch {
	case method == protocol.TerminalCreate:
		name, handOver = "cwd", w.HandOverDir
	case !strings.HasPrefix(method, protocol.FilePrefix):
		return nil
	}
	path, given, err := pathMember(params, name)
	switch {
	case err != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, err)
	case !given && method != protocol.TerminalCreate:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: params have no path", method)
	case !given: // the client starts the terminal in the session's cwd
		path = w.Roots().Cwd().String()
	}
	return checkPath(path, handOver)
}

// pathMember reads a text in params, such as a path. It rejects params in which a client might find
// another one, because the member occurs twice or is spelled in another case.
func pathMember(params backend.Raw, name string) (path string, given bool, err error) {
	field, err := onlyMember(params, name)
	if err != nil || !field.Present() || field.IsNull() {
		return "", false, err
	}
	path, wrong := field.Text()
	return path, true, strictjson.Refuse(wrong...)
}

// onlyMember returns a member of params, and rejects params in which a client might find another.
func onlyMember(params backend.Raw, name string) (field strictjson.Field, err error) {
	object, err := strictjson.ParseObject(params)
	if err != nil {
		return field, err
	}
	alike := 0
	for key := range object.All() {
		if strings.EqualFold(key, name) {
			alike++
		}
	}
	field = object.Field(name)
	if alike > 1 || (alike == 1 && !field.Present()) {
		return field, fmt.Errorf("give %q once, in this spelling", name)
	}
	return field, nil
}

// spellings returns a path as the system reads it, and as a client does that resolves ".." after a
// link in the text of the path.
func spellings(path string) []string { return slices.Compact([]string{path, filepath.Clean(path)}) }

// refusedOutside returns the error of a request for a path outside the roots.
func refusedOutside(outside *workspace.OutsideError) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
		"acp-agent refused this, whatever the user has allowed: %v; add the folder to the session "+
			"to use it", outside)
}

// checkPath rejects a path that handOver rejects. The error's tree contains the
// [*workspace.OutsideError] of a path outside.
func checkPath(path string, handOver func(string) error) error {
	if !filepath.IsAbs(path) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"%q is not absolute: give an absolute path", path)
	}
	for _, p := range spellings(path) { // both must stay inside
		err := handOver(p)
		if outside, ok := errors.AsType[*workspace.OutsideError](err); ok {
			// The agent may have asked the user, who would wonder why an allowed call fails.
			return errors.Join(refusedOutside(outside), outside)
		}
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && p == path:
			return jsonrpc.Errorf(protocol.CodeNotFound, "%v", err)
		case err != nil && !missing:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
	}
	return nil
}
