package acp

import (
	"context"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// A client opens a path by its name after it was checked, and in this moment a restricted process
// can let the path lead elsewhere. So the files of a restricted backend are read and written here,
// by handle.

// servesFiles reports whether a message of the backend is about files that are served here.
func (s *session) servesFiles(method string) bool {
	return s.agent.info().Restricted && strings.HasPrefix(method, protocol.FilePrefix)
}

// serveFile answers a request for a file in place of the client. The rules hold for the file that
// is opened: one that asks was answered for those of action only. A child session's request is
// answered from the session's roots too: the child's own would have to be opened by their paths.
func (s *session) serveFile(
	ctx context.Context, method string, params backend.Raw, action permission.Action,
) (backend.Raw, error) {
	if method != protocol.ReadTextFile && method != protocol.WriteTextFile {
		return nil, errNoFileMethod(method)
	}
	path, _, err := pathMember(params, "path")
	if err != nil {
		return nil, err
	}
	files := s.guarded.Checked(func(_ workspace.Access, before error) error {
		if rule, asks := permission.Asks(before); asks && rule.Action.IsPartOf(action) {
			return nil
		}
		return before
	})
	return tasks.FromDisk(ctx, s.agent.tasks, func() (backend.Raw, error) {
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

// errNoFileMethod answers other messages about files: the client might open one.
func errNoFileMethod(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"%s is not offered to an agent in acp-agent's sandbox", method)
}
