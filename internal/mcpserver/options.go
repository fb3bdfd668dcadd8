package mcpserver

import (
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Options configure a [Server]. The zero value works within its clients' roots.
type Options struct {
	// Name and Version are what the server introduces itself with. Default "acp-agent", "dev".
	Name, Version string
	// Roots, if not zero, are the scope of every client.
	Roots workspace.Roots
	// Fallback, if not zero, is the scope of clients that have no roots capability.
	Fallback workspace.Roots
	// Workspace bounds root sets and says which are allowed: clients' roots by the same rules as the others.
	Workspace workspace.Options
	// Tools bound the tools. Without a Permit, those that change files are not offered.
	Tools tools.Options
	// Timeout is how long a client may take to say its roots. Default 5 s.
	Timeout time.Duration
	// MaxAge is how old the roots may be of a client that does not tell of changes. Default 5 s (M8).
	MaxAge time.Duration
	// MaxMessage is the longest message that is read, in bytes. Default 64 MiB.
	MaxMessage int
	// MaxPending is how many requests of a stdio client, or of all HTTP clients together, are worked on at once; more are
	// refused until some are answered and read. It bounds the memory that answers take which nobody reads. Default 256.
	MaxPending int
	// MaxSessions is how many sessions HTTP clients may have open. Default 100.
	MaxSessions int
	// BodyTimeout is how long the body of an HTTP request may take to come. Default 30 s.
	BodyTimeout time.Duration
	// EndGrace is how long calls may go on when the client has closed its end. Default 2 s.
	EndGrace time.Duration
	// Logger takes what a person running the server should know. Default: discarded.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "acp-agent"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Second
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = 64 << 20
	}
	if o.MaxPending <= 0 {
		o.MaxPending = 256
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 100
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = 30 * time.Second
	}
	if o.EndGrace <= 0 {
		o.EndGrace = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
