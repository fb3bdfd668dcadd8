package proxy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/history/handoff"
	"github.com/acp-agent/acp-agent/workspace"
)

// Command says how to start a program.
type Command = profiles.Command

// Options configure a proxy. The zero value is usable.
type Options struct {
	// Profile describes the agent. How it is started is not taken from there.
	Profile profiles.Profile
	// RootsTools is the command of an MCP server with file tools for the session's roots,
	// "acp-agent mcp". With "--roots-from SOCKET" it asks this process for them in each call; with
	// "--read-only" it must have no tools that write. An agent that learns of its additional
	// directories from the prompt gets this server too, unless its profile says otherwise. Only
	// Path, which must be absolute, and Args are used. The zero value means none.
	RootsTools Command
	// Relay is the command of a relay for MCP servers, "acp-agent mcp-relay". Only Path, which must
	// be absolute, and Args are used. The zero value means none, whatever the profile says.
	Relay Command
	// Sandboxer is the command line with which the client's terminals run the commands of an agent
	// in the sandbox, "acp-agent sandbox --deferred", beginning with an absolute path. Nil means
	// that such an agent gets no terminals of the client, because they may be on another machine.
	Sandboxer []string
	// LoginArgs precede the arguments with which an agent in the sandbox lets the client run our
	// command in a terminal to sign in: "--", if others could be flags of the program.
	LoginArgs []string
	// RelayDir is the directory for the sockets that connect relays and RootsTools to this process.
	// It is created when needed. If it is empty, neither is used.
	RelayDir string
	// Workspace limits which files in the agent's own directories are served; see profiles.State.
	Workspace workspace.Options
	// Trace, if not nil, is called with every message read from a process of the agent (sent is
	// false) or about to be written to it, without its line break, and the name of the process,
	// such as "opencode[123]". It is called concurrently, must not keep or change line, and delays
	// the connection while it runs. In line, as in the agent's stderr and errors, known secrets are
	// replaced; messages to the agent may hold others.
	Trace func(process string, sent bool, line []byte)
	// Logger receives the agent's stderr, and reports of messages that cannot be passed on. Nil
	// discards both.
	Logger *slog.Logger

	limits limits
}

// limits are bounds and times, which tests change. A zero field means the default given with it.
type limits struct {
	child.Limits

	CancelGrace     time.Duration // for the answer to a prompt after session/cancel: 5 s
	Linger          time.Duration // until the processes of a Pool's last connection end: 1 min
	MaxContext      int           // bytes of a conversation that an agent is told: 32 KiB
	MaxInstructions int           // bytes of instructions: 64 KiB
	MaxSkills       int           // bytes of the list of skills: 16 KiB
	MaxPages        int           // of the agent's list of sessions: 10,000
	MaxSubagents    int           // of a session: 10,000
}

// withDefaults returns o with defaults for the logger and the limits.
func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l := &o.limits
	l.Limits = l.Limits.WithDefaults()
	l.CancelGrace = cmp.Or(l.CancelGrace, 5*time.Second)
	l.Linger = cmp.Or(l.Linger, time.Minute)
	l.MaxContext = cmp.Or(l.MaxContext, handoff.DefaultLimit)
	l.MaxInstructions = cmp.Or(l.MaxInstructions, 64<<10)
	l.MaxSkills = cmp.Or(l.MaxSkills, 16<<10)
	l.MaxPages = cmp.Or(l.MaxPages, 10_000)
	l.MaxSubagents = cmp.Or(l.MaxSubagents, 10_000)
	return o
}
