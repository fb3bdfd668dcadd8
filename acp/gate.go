package acp

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/workspace"
)

// gate lets through the client methods that the client advertised (A26).
type gate struct {
	capabilities atomic.Pointer[clientCapabilities]
}

// clientCapabilities are the members of initialize's clientCapabilities that gate methods.
// What cannot be read counts as not advertised.
type clientCapabilities struct {
	readTextFile, writeTextFile, terminal, elicitation bool
}

// allow refuses a method that the client did not advertise. Methods without a
// capability pass.
func (g *gate) allow(method string) error {
	c := g.capabilities.Load()
	if c == nil {
		c = &clientCapabilities{}
	}
	switch {
	case method == methodUpdate:
		return wire.Errorf(wire.CodeInternal, "%s goes through Update, so that it is recorded", method)
	case method == methodReadFile && !c.readTextFile,
		method == methodWriteFile && !c.writeTextFile,
		strings.HasPrefix(method, "terminal/") && !c.terminal,
		strings.HasPrefix(method, "elicitation/") && !c.elicitation:
		return wire.Errorf(wire.CodeMethodNotFound, "the client does not offer %s", method)
	}
	return nil
}

// needsSession reports whether a client method is about a session, whose roots it is
// checked against.
func needsSession(method string) bool {
	for _, prefix := range []string{"fs/", "terminal/", "session/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// checkPaths refuses a call whose declared paths lie outside the session's roots (A26, P4). It holds at
// the time of the check: the client's own access is the client's.
func checkPaths(w *workspace.Workspace, method string, params runtime.Raw) error {
	var declared struct {
		Path *string `json:"path"`
		Cwd  *string `json:"cwd"`
	}
	switch {
	case strings.HasPrefix(method, "fs/"), method == methodCreateTerminal:
		if err := json.Unmarshal(params, &declared); err != nil {
			return wire.Errorf(wire.CodeInvalidParams, "%s: params cannot be read", method)
		}
	default:
		return nil
	}
	switch {
	case method == methodCreateTerminal && declared.Cwd == nil:
		return nil
	case method == methodCreateTerminal:
		return checkPath(w, *declared.Cwd)
	case declared.Path == nil:
		return wire.Errorf(wire.CodeInvalidParams, "%s: params have no path", method)
	default:
		return checkPath(w, *declared.Path)
	}
}

// checkPath refuses a path outside of w. One that does not exist yet is judged by the
// directory that would hold it.
func checkPath(w *workspace.Workspace, path string) error {
	if !filepath.IsAbs(path) {
		return wire.Errorf(wire.CodeInvalidParams, "%s is not absolute: paths in the protocol are", path)
	}
	_, err := w.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = w.Stat(filepath.Dir(path))
	}
	if err != nil {
		return wire.Errorf(wire.CodeInvalidParams, "%v", err)
	}
	return nil
}
