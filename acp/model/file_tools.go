package model

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// fileTools returns the tools for the files of the roots.
func (s *modelSession) fileTools() (all []tool) {
	ask, _ := s.host.Restrictions()
	// Each call has a permit of its own, because the user is asked as part of it.
	o := tools.Options{Permit: func(context.Context, tools.Change) error { return errRejected }}
	if s.backend.files {
		o.Editor = openFiles{s}
	}
	for _, t := range tools.New(s.host.Workspace(), o).Tools() {
		all = append(all, tool{Tool: t, run: (*modelCall).runOwn,
			parallel: t.Annotations.ReadOnly && len(ask) == 0})
	}
	return all
}

// editorTime is how long the client may take to read or write a file.
const editorTime = 10 * time.Second

// openFiles reads and writes files through the client, which may have them open with unsaved
// changes. Each path is checked again before a request is sent. If commands are restricted, the
// client is not asked: a command could exchange a directory in the path for a link while the client
// opens it.
type openFiles struct{ session *modelSession }

// ReadTextFile implements [tools.Editor].
func (e openFiles) ReadTextFile(ctx context.Context, at workspace.Ref) (string, error) {
	var read sdk.ReadTextFileResponse
	err := e.call(ctx, protocol.ReadTextFile, map[string]string{"path": at.Path()}, &read)
	return read.Content, err
}

// WriteTextFile implements [tools.Editor].
func (e openFiles) WriteTextFile(ctx context.Context, at workspace.Ref, text string) error {
	params := map[string]string{"path": at.Path(), "content": text}
	return e.call(ctx, protocol.WriteTextFile, params, nil)
}

// call sends a request to the client and decodes its result, unless that is nil.
func (e openFiles) call(ctx context.Context, method string, params, result any) error {
	if s, _ := e.session.sandbox(); s.Mode != sandbox.Off {
		return errors.New("with a sandbox, only the text on the disk is used")
	}
	ctx, cancel := context.WithTimeout(ctx, editorTime)
	defer cancel()
	return callClient(ctx, e.session.host.For(backend.Sender{Decided: true}), method, params, result)
}

// callClient sends a request to the client and decodes its result, unless that is nil.
func callClient(ctx context.Context, c backend.Client, method string, params, result any) error {
	raw, err := c.Call(ctx, method, backend.Encode(params))()
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(raw, result)
}
