package child

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/workspace"
)

// Config says how children are started, and what they may do. Logger, Secrets and the functions must
// be set, but for Trace.
type Config struct {
	Command profiles.Command
	Profile profiles.Profile
	Env     []string // added to the command's
	// Sandboxer is the command line with which the client's terminals run the commands of a child
	// in the sandbox. Nil means that such a child gets no terminals.
	Sandboxer []string
	// Workspace limits which files in the children's own directories are served.
	Workspace workspace.Options
	// Trace, if not nil, is called with every message, without its line break; see proxy.Options.
	Trace   func(process string, sent bool, line []byte)
	Logger  *slog.Logger
	Secrets *secret.Scrubber
	// Admit is called before a process starts, and what it returns when the process has ended.
	Admit func(context.Context) (release func(), err error)
	// Refused is called when the sandbox has not let a process connect to another host.
	Refused func(by *Process)
	Limits  Limits
}

// Limits are bounds and times for children. A zero field means the default given with it.
type Limits struct {
	StartTimeout time.Duration // for the answer to initialize: 5 min, as npx installs some first
	StartNotice  time.Duration // until the log says that this takes long: 10 s
	EndTimeout   time.Duration // for the answer to session/close, session/delete, a ping: 2 s
	Idle         time.Duration // until an unused process for certain roots stops: 10 to 20 min
	Backoff      time.Duration // before a start after two failures, doubled up to 5 times: 250 ms
	ProcessGrace time.Duration // see process.Options.Grace
	MaxQueue     int           // see jsonrpc.Options.MaxQueue, for output to the agent
	MaxLine      int           // length of a message of the agent: 64 MiB

	MaxHeld      int // messages for unknown sessions: 1,000
	MaxHeldBytes int // the same in bytes of params, and of notifications beyond MaxQueue: 4 MiB
}

// WithDefaults returns l with defaults.
func (l Limits) WithDefaults() Limits {
	l.StartTimeout = cmp.Or(l.StartTimeout, 5*time.Minute)
	l.StartNotice = cmp.Or(l.StartNotice, 10*time.Second)
	l.EndTimeout = cmp.Or(l.EndTimeout, 2*time.Second)
	l.Idle = cmp.Or(l.Idle, 10*time.Minute)
	l.Backoff = cmp.Or(l.Backoff, 250*time.Millisecond)
	l.MaxLine = cmp.Or(l.MaxLine, 64<<20)
	l.MaxHeld = cmp.Or(l.MaxHeld, 1000)
	l.MaxHeldBytes = cmp.Or(l.MaxHeldBytes, 4<<20)
	return l
}
