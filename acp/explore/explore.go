package explore

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/discovery"
)

const (
	// maxBytes bounds the found text in an answer. The largest result of a tool fits.
	maxBytes = 2 * commands.MaxBytes
	// maxCommands is how many slash commands of the roots are announced.
	maxCommands = 500
)

// Kind is the backend.Info.Kind.
const Kind = "explore"

// New returns the backend. It is safe for concurrent use and keeps nothing between calls.
func New() backend.Backend { return explorer{} }

type explorer struct{}

func (explorer) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{
		Kind: Kind, SystemPrompts: backend.SystemPromptsRefused,
		// The adapter answers auth/status.
		Initialize: backend.Raw(`{"agentCapabilities":{"auth":{"status":{}}}}`),
	}, nil
}

// Open opens a session and announces its commands.
func (explorer) Open(
	ctx context.Context, _ backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	s := &explorerSession{host: h, roots: commands.LabelRoots(h.Workspace())}
	if err := s.announceCommands(ctx, h); err != nil {
		return nil, backend.Opened{}, err
	}
	return s, backend.Opened{}, nil
}

// Call returns nil: there are no further methods.
func (explorer) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (explorer) Notify(context.Context, string, backend.Raw)            {}
func (explorer) Close(context.Context) error                            { return nil }

// explorerSession is one activation. Its turns do not overlap, so its fields need no lock.
type explorerSession struct {
	host      backend.Host
	roots     []commands.Root
	announced backend.Commands
	mentions  discovery.Mentions // of instructions of directories, in answers
}

// Prompt answers one prompt.
func (s *explorerSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	return func() (backend.Raw, error) {
		p, err := readPrompt(params)
		if err != nil {
			return nil, err
		}
		t := &commandTurn{explorerSession: s, Reply: commands.NewReply(ctx, u, maxBytes)}
		return t.Finish(t.answer(ctx, p))
	}
}

// Call returns nil: there are no further methods.
func (*explorerSession) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (*explorerSession) Notify(context.Context, string, backend.Raw)            {}

// Cancel does nothing: cancelling ends the turn's context.
func (*explorerSession) Cancel(backend.Raw)          {}
func (*explorerSession) Close(context.Context) error { return nil }
