package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// ReadOutside answers a request to read a file outside the roots, if the user allows it. Such a
// request is never passed on: the file is read from the handle that was open when the user was
// asked. It fails with d.Err, without a question, if the file does not exist, is not a regular
// file, or policy denies it.
func (a *Access) ReadOutside(
	ctx context.Context, m Message, d ReadOutside, ask Asker,
) (backend.Raw, error) {
	lines, err := backend.ParseLines(m.Params)
	if err != nil {
		return nil, err
	}
	select {
	case a.outside <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-a.outside }()
	path, _, err := pathMember(m.Params, "path")
	if err != nil {
		return nil, d.Err
	}
	file, err := tasks.FromDiskOrUndo(ctx, a.Tasks, func() (*workspace.File, error) {
		return a.openOutside(ctx, path)
	}, func(late *workspace.File) {
		if late != nil {
			_ = late.Close()
		}
	})
	if err != nil {
		return nil, errors.Join(d.Err, context.Cause(ctx))
	}
	defer file.Close()
	if err := a.askToRead(ctx, path, file.Ref().Real(), d, ask); err != nil {
		return nil, err
	}
	return tasks.FromDisk(ctx, a.Tasks, func() (backend.Raw, error) {
		if !a.isStill(ctx, path, file) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"acp-agent refused this: %s was replaced while you were asked", path)
		}
		result, err := backend.ReadTextFile(ctx, file, lines)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
		return result, nil
	})
}

// isStill reports whether path still leads to file.
func (a *Access) isStill(ctx context.Context, path string, file *workspace.File) bool {
	again, err := a.openOutside(ctx, path)
	if err != nil {
		return false
	}
	defer again.Close()
	now, errNow := again.Stat()
	before, errBefore := file.Stat()
	return errNow == nil && errBefore == nil && os.SameFile(now, before) &&
		again.Ref().Real() == file.Ref().Real()
}

// realOutside returns the real path of a file outside the roots that may be asked about.
func (a *Access) realOutside(ctx context.Context, path string) (string, error) {
	file, err := a.openOutside(ctx, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Ref().Real(), nil
}

// openOutside opens the regular file that path leads to, without reading it. It fails if the policy
// denies the file, or if path could lead to another file in another program.
func (a *Access) openOutside(ctx context.Context, path string) (*workspace.File, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, errors.New("the path can be read in several ways")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	o := a.Open
	// Files there reveal data of this process, such as its environment.
	if proc, err := workspace.ParseDir("/proc"); err == nil {
		o.Policy.Deny = append(slices.Clone(o.Policy.Deny), proc)
	}
	roots, err := workspace.NewRoots(filepath.Dir(real), nil)
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, roots, o)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	file, err := w.Open(real)
	if err != nil {
		return nil, err
	}
	if file.Ref().Real() != real {
		return nil, errors.Join(errors.New("the path was replaced"), file.Close())
	}
	return file, nil
}

// Serves reports whether a message with this method is about files that are served here.
func (a *Access) Serves(method string) bool {
	return a.Restricted && strings.HasPrefix(method, protocol.FilePrefix)
}

// Serve answers a request for a file of a restricted backend in place of the client. A client opens
// a path by its name after it was checked, and in this moment a restricted process can let the path
// lead elsewhere. Here the file is read or written by handle, and the rules hold for the one that
// is opened: a rule that asks was answered for the files in passed only. A subagent's request
// is answered from the session's roots too: the subagent's own would have to be opened by their
// paths.
func (a *Access) Serve(
	ctx context.Context, method string, params backend.Raw, passed permission.Action,
) (backend.Raw, error) {
	if method != protocol.ReadTextFile && method != protocol.WriteTextFile {
		return nil, ErrNotServed(method)
	}
	path, _, err := pathMember(params, "path")
	if err != nil {
		return nil, err
	}
	files := a.Guarded.Checked(func(_ workspace.Access, before error) error {
		if rule, asks := permission.Asks(before); asks && rule.Action.IsPartOf(passed) {
			return nil
		}
		return before
	})
	return tasks.FromDisk(ctx, a.Tasks, func() (backend.Raw, error) {
		result, err := backend.ServeFile(ctx, files, method, path, params)
		outside, _ := errors.AsType[*workspace.OutsideError](err)
		switch {
		case outside != nil:
			return nil, refusedOutside(outside)
		case err != nil:
			return nil, backend.FileError(method, err)
		}
		return result, nil
	})
}

// ErrNotServed answers other messages about files: the client might open one.
func ErrNotServed(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"%s is not offered to an agent in acp-agent's sandbox", method)
}
