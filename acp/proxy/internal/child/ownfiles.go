package child

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/workspace"
)

// Some agents write long output of tools to a file in their own directories and read it back
// through the client. Such files are not in the session's roots and do not concern the client, so
// they are read and written here.

const tempVariable = "TMPDIR"

// ownDir is a directory that belongs to a child. It need not exist.
type ownDir struct {
	path string // as the child spells it
	real string // the same without links, when the child was started
}

// rel returns path relative to the directory, or false if path is not below it.
func (d ownDir) rel(path string) (rel string, ok bool) {
	for _, dir := range []string{d.path, d.real} {
		if rel, ok := relativeTo(dir, path); ok {
			return rel, true
		}
	}
	return "", false
}

// relativeTo returns path relative to dir, or false if path is not below it.
func relativeTo(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && rel != "." && filepath.IsLocal(rel)
}

// ownDirs returns the directories of a child that is started by command. What its sandbox does not
// let it write is not among them.
func (o Config) ownDirs(command profiles.Command) []ownDir {
	var dirs []ownDir
	add := func(path string) {
		if filepath.IsAbs(path) {
			path = filepath.Clean(path)
			// The directories above it may be links, it may not.
			real := filepath.Join(links.RealPath(filepath.Dir(path)), filepath.Base(path))
			if command.Sandbox.Writes(real) {
				dirs = append(dirs, ownDir{path, real})
			}
		}
	}
	for _, dir := range o.Profile.State.OwnDirs {
		add(command.Expand(dir))
	}
	if temp := o.tempDir(); temp != "" && command.Expand("$"+tempVariable) == temp {
		add(temp)
	}
	return dirs
}

// tempDir returns the agent's own temporary directory, or "" if it uses the common one. The
// directory is kept when the agent ends, because a session that is continued later may refer to
// files in it.
func (o Config) tempDir() string {
	if !o.Profile.State.OwnTemp || runtime.GOOS == "windows" {
		return ""
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("acp-agent-%d", os.Getuid()),
		o.Profile.Name)
}

// tempEnv returns the environment that makes the agent use tempDir, unless the user has set another
// directory.
func (o Config) tempEnv() []string {
	dir := o.tempDir()
	if dir == "" || slices.ContainsFunc(o.Command.Env,
		func(entry string) bool { return strings.HasPrefix(entry, tempVariable+"=") }) {
		return nil
	}
	// the first directory keeps other users from replacing the second
	for _, dir := range []string{filepath.Dir(dir), dir} {
		if err := privatefile.MakeDir(dir); err != nil {
			o.Logger.Warn("cannot give the agent a temporary directory of its own: "+
				"it may be unable to read long output of its tools", "error", err)
			return nil
		}
	}
	return []string{tempVariable + "=" + dir}
}

// OwnFile returns the work for a request for a file in one of the child's own directories, and not
// in a root in there. ok is false for any other request.
func (c *Process) OwnFile(
	ctx context.Context, roots workspace.Roots, method string, params backend.Raw,
) (work backend.Work, ok bool) {
	if len(c.own) == 0 || method != sdk.ClientMethodFsReadTextFile &&
		method != sdk.ClientMethodFsWriteTextFile {
		return nil, false
	}
	var r struct{ Path string }
	if json.Unmarshal(params, &r) != nil || filepath.Clean(r.Path) != r.Path ||
		!filepath.IsAbs(r.Path) {
		return nil, false
	}
	for _, dir := range c.own {
		rel, inside := dir.rel(r.Path)
		if !inside || dir.hasRootOf(roots, r.Path) {
			continue
		}
		return func() (backend.Raw, error) {
			result, err := dir.serve(ctx, c.program.config.Workspace, method, rel, params)
			if err != nil {
				return nil, backend.FileError(method, err)
			}
			return result, nil
		}, true
	}
	return nil, false
}

// hasRootOf reports whether one of the roots lies in the directory and contains path.
func (d ownDir) hasRootOf(roots workspace.Roots, path string) bool {
	for _, root := range roots.All() {
		_, below := d.rel(root.String())
		if _, inside := relativeTo(root.String(), path); below && inside {
			return true
		}
	}
	return false
}

// serve answers a request for the file at rel. It fails if the path of the directory now points
// somewhere else.
func (d ownDir) serve(
	ctx context.Context, o workspace.Options, method, rel string, params backend.Raw,
) (backend.Raw, error) {
	roots, err := workspace.NewRoots(d.real, nil)
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, roots, o)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if real := w.Root(0).Real.String(); real != d.real {
		return nil, fmt.Errorf("%s was replaced: it is %s now", d.real, real)
	}
	return backend.ServeFile(ctx, w, method, filepath.Join(d.real, rel), params)
}
