package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// checkPaths rejects a message whose paths are not in the session's roots, or the subagent's.
func (a *Access) checkPaths(ctx context.Context, m Message) error {
	err := CheckPaths(a.Guarded, m.Method, m.Params)
	if err != nil || m.From.Subagent == "" {
		return err
	}
	return a.inRoots(ctx, m.From, func(w *workspace.Workspace) error {
		return CheckPaths(w, m.Method, m.Params)
	})
}

// inRoots calls do with the sender's roots. Those of a subagent that works in other roots than the
// session are open only meanwhile, because the subagent may replace them.
func (a *Access) inRoots(
	ctx context.Context, from backend.Sender, do func(w *workspace.Workspace) error,
) error {
	if from.Subagent == "" || from.Roots.IsZero() || from.Roots.Equal(a.Roots.Roots()) {
		return do(a.Roots)
	}
	known := a.Roots.Opened()
	roots := from.Roots.Granting(func(dir workspace.Dir) workspace.Grant {
		grant, _ := workspace.GrantOf(workspace.Real(dir), known)
		return grant
	})
	w, err := workspace.Open(ctx, roots, a.Open)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the folders of the subagent: %v", err)
	}
	defer w.Close()
	return do(w)
}

// CheckPaths rejects a request to the client whose path does not lead to a file or directory that
// the session may use, or now points somewhere else. This holds at the time of the check: what the
// client then opens is up to the client.
func CheckPaths(w *workspace.Workspace, method string, params backend.Raw) error {
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
