// Package servers shows a session's MCP servers to ACP clients and backends.
//
// A [Set] implements [backend.Tools] with the servers of one session. It presents what they do as
// ACP: a call becomes a tool call, which the user allows or rejects; a question of a server becomes
// an elicitation, or a permission request if the server asks the session's model. Package
// internal/mcp/mcpclient, below it, starts the servers and speaks MCP with them, describes them
// with the types of package acp/mcp, and asks back through [mcpclient.Host].
//
//	starting := make(chan struct{}, 8)                       // one per process
//	set := servers.NewSet(starting, mcpclient.Options{})     // one per session
//	change, err := set.Prepare(workspace, configs)           // may fail, has no effect
//	set.Commit(change, host, sampler)                        // cannot fail
//	result, err := set.Call(ctx, updates, "files.read", raw) // starts the server, asks the user
//	err = set.Close(ctx)                                     // stops the servers
//
// # Lifecycle requests
//
//   - session/new and fork: NewSet and Prepare before anything takes effect; Commit once the
//     session is stored.
//   - session/load and resume of an active session: Prepare on its set, with the new workspace and
//     the complete list of servers; Commit after the running turn has ended and the store has the
//     new roots, before the replay. On failure, drop the change.
//   - session/load and resume of another session: as session/new.
//   - session/close and delete, and the end of the process: Close.
package servers

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
)

// Set has the MCP servers of one session. It adds to the set that it embeds what the client sees of
// calls, and who answers the servers' questions. It is safe for concurrent use and must be closed.
type Set struct {
	*mcpclient.Set
	log                 *slog.Logger
	maxResult, maxShown int // bytes of a tool's result for the backend and for the client

	session atomic.Pointer[answerer] // of the last change, nil before the first
}

var _ backend.Tools = (*Set)(nil)

// NewSet returns a set without servers, see [mcpclient.NewSet]. They come with the first Commit.
func NewSet(starting chan struct{}, o mcpclient.Options) *Set {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Set{
		Set: mcpclient.NewSet(starting, o), log: o.Logger, maxResult: 1 << 20, maxShown: 64 << 10,
	}
}

// Commit makes a change and sends permission requests and messages to session from then on. m
// answers the servers that ask the session's model; it is nil if there is none. The session's
// previous turn must have ended. See [mcpclient.Change.Commit].
func (s *Set) Commit(change *mcpclient.Change, session backend.Host, m backend.Sampler) {
	a := &answerer{Host: session, model: m, log: s.log}
	s.session.Store(a)
	change.Commit(a)
}

// ReadResource implements [backend.Tools].
func (s *Set) ReadResource(ctx context.Context, server, uri string) (backend.ToolResult, error) {
	r, err := s.Set.ReadResource(ctx, server, uri)
	if err != nil {
		return backend.ToolResult{}, err
	}
	content := newBoundedContent(s.maxResult)
	for _, resource := range r.Contents {
		if resource != nil {
			content.add(map[string]any{"type": "resource", "resource": resource})
		}
	}
	return backend.ToolResult{Content: content.blocks, Cut: content.describeCut()}, nil
}

// Prompt implements [backend.Tools].
func (s *Set) Prompt(ctx context.Context, name, arguments string) (backend.ToolResult, error) {
	r, err := s.GetPrompt(ctx, name, arguments)
	if err != nil {
		return backend.ToolResult{}, err
	}
	content := newBoundedContent(s.maxResult)
	for _, m := range r.Messages {
		if m == nil || m.Content == nil || isForUser(m.Content) {
			continue
		}
		if m.Role != "user" {
			content.add(sdk.TextBlock("[What follows is an example of an answer.]"))
		}
		content.add(m.Content)
	}
	return backend.ToolResult{Content: content.blocks, Cut: content.describeCut()}, nil
}
