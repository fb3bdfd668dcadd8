package proxy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
)

// Options configure a proxy. The zero value is usable.
type Options struct {
	// Profile says how the agent takes directories, and where it departs from the protocol. Its
	// command is not looked at. Default: nothing special.
	Profile profile.Profile
	// CacheDir is the directory in which is kept what agents that have a process for each session answered to
	// initialize, so that none is started for that alone. It is made when needed. Default: not kept.
	CacheDir string
	// Logger takes what cannot be passed on, and the child's stderr. Default: discarded.
	Logger *slog.Logger
	// Child is how the process is run. Its Logger is Logger if it has none.
	Child process.Options
	// Wire are the limits of the connection to the child. OpaqueParams is always set; Logger is
	// Logger if it has none; the default of Grace is 100 ms.
	Wire jsonrpc.Options
	// StartTimeout is how long the child may take to answer initialize. Default 60 s: some download
	// themselves at their first start.
	StartTimeout time.Duration
	// CancelGrace is how long a turn that ended early waits for the child's answer. Default 5 s.
	CancelGrace time.Duration
	// EndTimeout is how long the child may take to close or delete a session. Default 2 s.
	EndTimeout time.Duration
	// Backoff is how long a start waits that follows two failures: starts that failed, or children that ended by
	// themselves before a prompt was answered. Each further one doubles it, up to 32 times this. Default 250 ms.
	Backoff time.Duration
	// MaxContext bounds the conversation that a child is given in place of a history of its own, in bytes of
	// text. Default 32 KiB.
	MaxContext int
	// MaxInstructions bounds what a child is told of the instructions that were found in the other roots, in bytes of text
	// and beyond the budgets of package discovery. Default 64 KiB.
	MaxInstructions int
	// MaxCommands bounds the commands that were found and are announced. Default 500.
	MaxCommands int
	// MaxExpansion bounds the text of a command that was found, in bytes, with the arguments where it wants them. A prompt
	// that calls a longer one is refused. Default 2 MiB.
	MaxExpansion int
	// RootsTools is the command of an MCP server that has tools for the roots it is given as "--root DIR" each, and none that
	// writes if it is given "--read-only", as it is for an agent that is not known to ask (A30). An agent that
	// is told of its roots in words is given it with the session's own servers, unless its profile says that it is to
	// have none. Only Path, absolute, and Args are looked at. Default: none.
	RootsTools process.Command
	// Relay is the command of a relay ([mcprelay.Publisher.Wrap]), in front of which nothing else is said. Only Path, absolute, and
	// Args are looked at. Default: none, whatever the profile says.
	Relay process.Command
	// RelayDir is the directory of the sockets by which relays hear of the roots. It is made when needed. Default:
	// there are no relays.
	RelayDir string
	// MaxForeign bounds the sessions that are taken from the child's list. Default 1,000.
	MaxForeign int
	// MaxHeld is the number of messages that are held for sessions which the child has not yet
	// announced, and of notifications for a child that does not read; the former are dropped
	// with a warning beyond it, the latter end the child. Default 1,000.
	MaxHeld int
	// MaxHeldBytes is the same in bytes of params. Default 4 MiB.
	MaxHeldBytes int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Child.Logger = cmp.Or(o.Child.Logger, o.Logger)
	o.Wire.Logger = cmp.Or(o.Wire.Logger, o.Logger)
	o.Wire.OpaqueParams = true
	o.Wire.Grace = cmp.Or(o.Wire.Grace, 100*time.Millisecond)
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute)
	o.CancelGrace = cmp.Or(o.CancelGrace, 5*time.Second)
	o.EndTimeout = cmp.Or(o.EndTimeout, 2*time.Second)
	o.Backoff = cmp.Or(o.Backoff, 250*time.Millisecond)
	o.MaxContext = cmp.Or(o.MaxContext, 32<<10)
	o.MaxInstructions = cmp.Or(o.MaxInstructions, 64<<10)
	o.MaxCommands = cmp.Or(o.MaxCommands, 500)
	o.MaxExpansion = cmp.Or(o.MaxExpansion, 2<<20)
	o.MaxForeign = cmp.Or(o.MaxForeign, 1000)
	o.MaxHeld = cmp.Or(o.MaxHeld, 1000)
	o.MaxHeldBytes = cmp.Or(o.MaxHeldBytes, 4<<20)
	return o
}
