package servers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set manages the MCP servers of one session. It is safe for concurrent use and must be closed.
type Set struct {
	client              *mcpclient.Set
	log                 *slog.Logger
	maxResult, maxShown int // bytes of a tool's result for the backend and for the client
	listing             sync.WaitGroup

	mu      sync.Mutex
	session Session                    // of the last change, nil before the first
	allowed map[mcpclient.ToolKey]bool // the tools that the user always allows
}

var _ backend.Tools = (*Set)(nil)

// NewSet returns a set without servers. They come with the first Commit.
func NewSet(starter *mcpclient.Starter, o mcpclient.Options) *Set {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Set{
		client: mcpclient.NewSet(starter, o), log: o.Logger, maxResult: 1 << 20, maxShown: 64 << 10,
		allowed: make(map[mcpclient.ToolKey]bool),
	}
}

// Close stops all servers with their process groups and waits for them. When ctx ends, they are
// killed. All methods fail with [backend.ErrClosed] from then on.
func (s *Set) Close(ctx context.Context) error {
	if err := s.client.Close(ctx); err != nil {
		return err
	}
	s.mu.Lock() // List adds nothing any more
	defer s.mu.Unlock()
	s.listing.Wait()
	return nil
}

// currentSession returns the session of the last change.
func (s *Set) currentSession() Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// Session is the session that a set belongs to. A [backend.Host] is one.
type Session interface {
	backend.Client  // asks the user
	backend.Updates // shows what happens outside of calls
}

// Prepare checks a change to the roots of w and to configs, the complete and ordered list of
// servers. It has no effect, and the change may be dropped. The error is a
// [*mcpclient.TooManyError], [backend.ErrClosed], or [workspace.ErrClosed] if w was closed.
func (s *Set) Prepare(
	w *workspace.Workspace, configs []mcpclient.Config,
) (*mcpclient.Change, error) {
	change, err := s.client.Prepare(w, configs)
	return change, border(err)
}

// Commit makes a change and sends permission requests and messages to session from then on. m
// answers the servers that ask the session's model; it is nil if there is none. Commit cannot fail
// and does not wait for servers. The session's previous turn must have ended. Changes are committed
// in the order in which they were prepared.
func (s *Set) Commit(change *mcpclient.Change, session Session, m backend.Sampler) {
	s.mu.Lock()
	s.session = session
	s.mu.Unlock()
	h := &host{Session: session, model: m, set: s}
	if m == nil {
		change.Commit(h, nil)
	} else {
		change.Commit(h, h)
	}
}

// border converts an error of package client to one of package backend.
func border(err error) error {
	if missing, ok := errors.AsType[*mcpclient.NotFoundError](err); ok {
		return &backend.UnknownNameError{Kind: missing.Kind, Name: missing.Name}
	}
	if errors.Is(err, mcpclient.ErrClosed) {
		return backend.ErrClosed
	}
	return err
}

// Servers implements [backend.Tools].
func (s *Set) Servers() []backend.ServerStatus {
	var all []backend.ServerStatus
	for _, status := range s.client.Servers() {
		all = append(all, describeStatus(status))
	}
	return all
}

func describeStatus(s mcpclient.Status) backend.ServerStatus {
	if s.SignIn != "" {
		s.Waiting += ": " + openPage(s.SignIn)
	}
	return backend.ServerStatus{
		Name: s.Name, Prefix: s.Prefix, Transport: string(s.Transport), File: s.File,
		State: backend.ServerState(s.State), Waiting: s.Waiting, Err: border(s.Err),
		RetryAt: s.RetryAt, Restarts: s.Restarts,
		Product: s.Product, Revision: s.Revision, Modern: s.Modern, Instructions: s.Instructions,
		RootsDeclared: s.RootsDeclared, SentRoots: s.SentRoots, SentAt: s.SentAt,
		Warnings: s.Warnings, Prompts: describePrompts(s.Prompts),
	}
}

// List implements [backend.Tools].
func (s *Set) List(ctx context.Context) (<-chan backend.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := s.client.List(ctx)
	if err != nil {
		return nil, border(err)
	}
	to := make(chan backend.Listing, cap(from))
	s.listing.Go(func() {
		defer close(to)
		for l := range from {
			described := backend.Listing{ServerStatus: describeStatus(l.Status), Cut: l.Cut}
			for _, t := range l.Tools {
				described.Tools = append(described.Tools, describeTool(t))
			}
			for _, r := range l.Resources {
				described.Resources = append(described.Resources,
					backend.Resource{URI: r.URI, Description: r.Description})
			}
			to <- described
		}
	})
	return to, nil
}

// ReadResource implements [backend.Tools].
func (s *Set) ReadResource(ctx context.Context, server, uri string) (backend.ToolResult, error) {
	r, err := s.client.ReadResource(ctx, server, uri)
	if err != nil {
		return backend.ToolResult{}, border(err)
	}
	content := newBoundedContent(s.maxResult)
	for _, resource := range r.Contents {
		if resource != nil {
			content.add(map[string]any{"type": "resource", "resource": resource})
		}
	}
	return backend.ToolResult{Content: content.blocks, Cut: content.describeCut()}, nil
}

// quotedName returns a name in quotes, so that it cannot pass for what follows it.
func quotedName(name string) string { return text.Quote(text.Truncate(name, text.MaxName)) }
