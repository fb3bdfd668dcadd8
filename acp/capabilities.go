package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
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
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "%s goes through Update, so that it is recorded", method)
	case method == methodReadFile && !c.readTextFile,
		method == methodWriteFile && !c.writeTextFile,
		strings.HasPrefix(method, "terminal/") && !c.terminal,
		strings.HasPrefix(method, "elicitation/") && !c.elicitation:
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not offer %s", method)
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
func checkPaths(w *workspace.Workspace, method string, params backend.Raw) error {
	name := "path"
	switch {
	case method == methodCreateTerminal:
		name = "cwd"
	case !strings.HasPrefix(method, "fs/"):
		return nil
	}
	path, given, err := declared(params, name)
	switch {
	case err != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, err)
	case given:
		return checkPath(w, path)
	case method == methodCreateTerminal:
		return nil
	default:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: params have no path", method)
	}
}

// declared reads the path in a member of params. What a client could read in another way than we do is an
// error: a member given twice, or spelled in another case.
func declared(params backend.Raw, name string) (path string, given bool, err error) {
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
		return "", false, fmt.Errorf("%q has to be given once, in this spelling", name)
	}
	if !field.Present() || field.IsNull() {
		return "", false, nil
	}
	path, wrong := field.Text()
	return path, true, strictjson.Refuse(wrong...)
}

// checkPath refuses a path outside of w. One that does not exist yet is judged by where a file of that
// name would be made.
func checkPath(w *workspace.Workspace, path string) error {
	if !filepath.IsAbs(path) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%q is not absolute: paths in the protocol are", path)
	}
	// A client may take ".." as the system does, behind a link, or by the text: both ways have to stay inside.
	for _, way := range []string{path, filepath.Clean(path)} {
		_, err := w.Stat(way)
		if errors.Is(err, fs.ErrNotExist) {
			_, err = w.WriteTarget(way)
		}
		if err != nil && (way == path || !errors.Is(err, fs.ErrNotExist)) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
	}
	return nil
}
