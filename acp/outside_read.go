package acp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// A file outside the roots that a backend wants to read through the client is never passed on: the
// user is asked, and then the file is read here, from the handle that was open when the question
// was asked.

// readOutside answers a request of the backend to read a file outside the roots. refusal is the
// error if the user cannot be asked: because the file does not exist, is not a regular file, or
// policy denies it.
func (s *session) readOutside(
	ctx context.Context, params backend.Raw, refusal error,
) (backend.Raw, error) {
	lines, err := backend.ParseLines(params)
	if err != nil {
		return nil, err
	}
	select {
	case s.outside <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.outside }()
	path, _, err := pathMember(params, "path")
	if err != nil {
		return nil, refusal
	}
	file, err := s.openOutside(ctx, path)
	if err != nil {
		return nil, errors.Join(refusal, context.Cause(ctx))
	}
	defer file.Close()
	if err := s.askToRead(ctx, path, file.Ref().Real(), refusal); err != nil {
		return nil, err
	}
	if !s.isStill(ctx, path, file) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"acp-agent refused this: %s was replaced while you were asked", path)
	}
	return tasks.FromDisk(ctx, s.agent.tasks, func() (backend.Raw, error) {
		result, err := backend.ReadTextFile(ctx, file, lines)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
		return result, nil
	})
}

// isStill reports whether path still leads to file.
func (s *session) isStill(ctx context.Context, path string, file *workspace.File) bool {
	again, err := s.openOutside(ctx, path)
	if err != nil {
		return false
	}
	defer again.Close()
	now, errNow := again.Stat()
	before, errBefore := file.Stat()
	return errNow == nil && errBefore == nil && os.SameFile(now, before) &&
		again.Ref().Real() == file.Ref().Real()
}

// openOutside opens the regular file that path leads to, without reading it. It fails if the policy
// denies the file, or if path could lead to another file in another program.
func (s *session) openOutside(ctx context.Context, path string) (*workspace.File, error) {
	var file *workspace.File
	err := s.agent.tasks.OnDiskOrUndo(ctx, func() (err error) {
		file, err = openOutside(ctx, path, s.agent.options.Workspace)
		return err
	}, func() {
		if file != nil {
			_ = file.Close()
		}
	})
	if err != nil { // it may still be being opened
		return nil, err
	}
	return file, nil
}

func openOutside(
	ctx context.Context, path string, o workspace.Options,
) (*workspace.File, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, errors.New("the path can be read in several ways")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
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

// askToRead asks the user whether the file at the real path may be read, and returns nil if so.
// path is what the backend asked for, and refusal the error if the client cannot ask.
func (s *session) askToRead(ctx context.Context, path, real string, refusal error) error {
	about := "The agent wants to read a file outside the folders of this session:\n\n" +
		text.Block("", text.Printable(real))
	if path != real {
		about += "\n\nIt asked for it by this path, which leads there:\n\n" +
			text.Block("", text.Printable(path))
	}
	_, err := backend.AskShown(ctx, s, s, backend.Question{
		Call: backend.NewToolCall("read", sdk.ToolKindRead,
			"Read "+text.Code(text.Printable(real)), about),
		Once: "Allow once", Reject: "Reject",
		Action: permission.At(s.guarded).OutsideRead(path, real),
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, backend.ErrCancelled):
		return err
	case errors.Is(err, backend.ErrRejected):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"the user did not allow reading %s, which is outside the session's folders", path)
	case err != nil:
		return refusal
	}
	return nil
}
