package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// clientCapabilities holds the members of initialize's clientCapabilities that allow methods, and
// other facts about the client. A member that is not valid counts as not advertised.
type clientCapabilities struct {
	unlimited bool // it is among unlimitedClients
	// terminalSignIn means that it can start the program in a terminal to sign in.
	terminalSignIn bool

	readTextFile, writeTextFile, terminal, elicitation bool
	elicitationModes                                   []string // "form", "url"
}

func readClientCapabilities(params json.RawMessage) *clientCapabilities {
	capabilities := members(members(params)["clientCapabilities"])
	files := members(capabilities["fs"])
	elicitation := members(capabilities["elicitation"])
	var name string
	_ = json.Unmarshal(strictjson.Find(params, "clientInfo", "name"), &name)
	var modes []string
	for _, mode := range []string{"form", "url"} {
		if strictjson.IsObject(elicitation[mode]) {
			modes = append(modes, mode)
		}
	}
	return &clientCapabilities{
		unlimited: isUnlimited(name),
		terminalSignIn: isTrue(members(capabilities["auth"])["terminal"]) ||
			isTrue(members(capabilities["_meta"])["terminal-auth"]), // before it was standard
		readTextFile:  isTrue(files["readTextFile"]),
		writeTextFile: isTrue(files["writeTextFile"]),
		terminal:      isTrue(capabilities["terminal"]),
		elicitation:   strictjson.IsObject(capabilities["elicitation"]), elicitationModes: modes,
	}
}

// checkMethod rejects a request to the client for a method, or a mode of elicitation, that the
// client did not advertise.
func (a *agent) checkMethod(method string, params backend.Raw) error {
	c := a.capabilities.Load()
	if c == nil {
		c = &clientCapabilities{}
	}
	switch {
	case method == protocol.SessionUpdate:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "send %s with Update, so that it is recorded",
			method)
	case method == protocol.ReadTextFile && !c.readTextFile,
		method == protocol.WriteTextFile && !c.writeTextFile,
		strings.HasPrefix(method, protocol.TerminalPrefix) && !c.terminal,
		strings.HasPrefix(method, protocol.ElicitationPrefix) && !c.elicitation:
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not offer %s", method)
	case method == protocol.ElicitationCreate:
		var mode string
		_ = json.Unmarshal(members(params)["mode"], &mode)
		if (mode == "form" || mode == "url") && !slices.Contains(c.elicitationModes, mode) {
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
				"the client does not offer %s with mode %s", method, mode)
		}
	}
	return nil
}

// needsSession reports whether a method of the client belongs to a session.
func needsSession(method string) bool {
	for _, prefix := range []string{protocol.FilePrefix, protocol.TerminalPrefix,
		protocol.SessionPrefix} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
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

// pathMember reads a path in params. It rejects params in which a client might find another path,
// because the member occurs twice or is spelled in another case.
func pathMember(params backend.Raw, name string) (path string, given bool, err error) {
	object, err := strictjson.ParseObject(params)
	if err != nil {
		return "", false, err
	}
	alike := 0
	for key := range object.All() {
		if strings.EqualFold(key, name) {
			alike++
		}
	}
	field := object.Field(name)
	if alike > 1 || (alike == 1 && !field.Present()) {
		return "", false, fmt.Errorf("give %q once, in this spelling", name)
	}
	if !field.Present() || field.IsNull() {
		return "", false, nil
	}
	path, wrong := field.Text()
	return path, true, strictjson.Refuse(wrong...)
}

// checkPath rejects a path that handOver rejects. The error's tree contains the
// [*workspace.OutsideError] of a path outside.
func checkPath(path string, handOver func(string) error) error {
	if !filepath.IsAbs(path) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"%q is not absolute: give an absolute path", path)
	}
	// A client may resolve ".." after a link as the system does, or in the text of the path. Both
	// must stay inside.
	for _, p := range slices.Compact([]string{path, filepath.Clean(path)}) {
		err := handOver(p)
		if outside, ok := errors.AsType[*workspace.OutsideError](err); ok {
			// The agent may have asked the user, who would wonder why an allowed call fails.
			return errors.Join(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"acp-agent refused this, whatever the user has allowed: %v; add the folder to "+
					"the session to use it", outside), outside)
		}
		if err != nil && (p == path || !errors.Is(err, fs.ErrNotExist)) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
	}
	return nil
}
