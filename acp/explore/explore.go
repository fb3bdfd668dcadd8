package explore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options bound the answers. A zero field is its default.
type Options struct {
	// MaxHits is the most lines or files that an answer shows. Default 200.
	MaxHits int
	// MaxBytes is the most text of an answer, in bytes; what is said about it comes on top. Default 64 KiB.
	MaxBytes int
	// MaxFileSize is the size in bytes over which a file is neither searched nor written. Default 1 MiB.
	MaxFileSize int64
	// MaxFiles is the most files that are looked at for an answer. Default 200,000.
	MaxFiles int
	// MaxCommands is the most slash commands that are announced, our own not counted. Default 500.
	MaxCommands int
}

func (o Options) withDefaults() Options {
	if o.MaxHits == 0 {
		o.MaxHits = 200
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 10
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = 1 << 20
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = 200_000
	}
	if o.MaxCommands == 0 {
		o.MaxCommands = 500
	}
	return o
}

// New returns the runtime. It is safe for concurrent use and holds nothing between calls.
func New(o Options) backend.Backend { return explorer{options: o.withDefaults()} }

type explorer struct{ options Options }

// Initialize implements [backend.Backend].
func (explorer) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "explore", Command: "acp-agent"}, nil
}

// Open implements [backend.Backend]: it announces the commands.
func (e explorer) Open(ctx context.Context, _ backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	s := &session{options: e.options, host: h, roots: labelled(h.Workspace()), offers: offers{stale: true}}
	if err := s.offer(ctx, h); err != nil {
		return nil, backend.Opened{}, err
	}
	return s, backend.Opened{}, nil
}

// Call implements [backend.Backend]: there are no such methods.
func (explorer) Call(context.Context, string, backend.Raw) backend.Work { return nil }

// Notify implements [backend.Backend].
func (explorer) Notify(context.Context, string, backend.Raw) {}

// Close implements [backend.Backend].
func (explorer) Close(context.Context) error { return nil }

// session is one activation. Its turns do not overlap, so what changes needs no lock.
type session struct {
	options Options
	host    backend.Host
	roots   []root
	offers  offers
	// started are the MCP servers of the roots that the user had started, by file and name.
	started map[string]bool
}

func (s *session) workspace() *workspace.Workspace { return s.host.Workspace() }

// Prompt implements [backend.Session].
func (s *session) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		p, err := readPrompt(params)
		if err != nil {
			return nil, err
		}
		t := &turn{session: s, reply: newReply(ctx, u, s.options.MaxBytes)}
		err = t.answer(ctx, p)
		switch {
		case ctx.Err() != nil, errors.Is(err, backend.ErrCancelled):
			return stopped("cancelled"), nil
		case err != nil:
			return nil, err
		default:
			return stopped("end_turn"), nil
		}
	}
}

// Call implements [backend.Session]: there are no such methods.
func (*session) Call(context.Context, string, backend.Raw) backend.Work { return nil }

// Notify implements [backend.Session].
func (*session) Notify(context.Context, string, backend.Raw) {}

// Cancel implements [backend.Session]: the turn's context says it.
func (*session) Cancel(backend.Raw) {}

// Close implements [backend.Session].
func (*session) Close(context.Context) error { return nil }

func stopped(reason string) backend.Raw {
	return json.RawMessage(`{"stopReason":"` + reason + `"}`)
}
