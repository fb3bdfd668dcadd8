package proxy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/workspace"
)

// Command says how to start a program: its path, arguments and additional environment.
type Command = process.Command

// Options configure a proxy. The zero value is usable.
type Options struct {
	// Profile describes the agent. Its Command and Args are ignored.
	Profile Profile
	// RootsTools is the command of an MCP server with file tools for the session's roots,
	// "acp-agent mcp". With "--roots-from SOCKET" it asks this process for them in each call; with
	// "--read-only" it must have no tools that write. An agent that is told about its additional
	// directories in the prompt is given this server too, unless its profile says otherwise. Only
	// Path, which must be absolute, and Args are used. The zero value means none.
	RootsTools Command
	// Relay is the command of a relay for MCP servers, "acp-agent mcp-relay". Only Path, which must
	// be absolute, and Args are used. The zero value means none, whatever the profile says.
	Relay Command
	// RelayDir is the directory for the sockets that connect relays and RootsTools to this process.
	// It is created when needed. If it is empty, neither is used.
	RelayDir string
	// Workspace bounds what is served of the agent's own directories; see Profile.OwnDirs.
	Workspace workspace.Options
	// Trace, if not nil, is called with every message read from a process of the agent (sent is
	// false) or about to be written to it, without its line break, and the name of the process,
	// such as "opencode[123]". It is called concurrently, must not keep or change line, and delays
	// the connection while it runs. The secrets that are replaced in the agent's stderr and errors
	// are replaced in line too; messages to the agent may hold others.
	Trace func(process string, sent bool, line []byte)
	// Logger receives the agent's stderr and what cannot be passed on. Nil discards it.
	Logger *slog.Logger

	limits limits
}

// limits are bounds and times that tests change. A zero field means its default.
type limits struct {
	startTimeout    time.Duration // for the agent's answer to initialize, 60 s: some agents download themselves when first started
	cancelGrace     time.Duration // for the answer to a prompt after session/cancel, 5 s
	endTimeout      time.Duration // for the answer to session/close, session/delete and a ping, 2 s
	idle            time.Duration // after which a process that was started for certain directories is stopped, 10 min; it may be twice that
	backoff         time.Duration // before a start that follows two failures, 250 ms; each further failure doubles it, up to 32 times
	processGrace    time.Duration // for the process to exit by itself, process.Options.Grace
	maxQueue        int           // bytes of output to the agent, jsonrpc.Options.MaxQueue
	maxHeld         int           // messages for sessions that the agent has not announced, and notifications it has not read, 1,000
	maxHeldBytes    int           // the same in bytes of params, 4 MiB
	maxContext      int           // bytes of conversation told to an agent that does not have it, 32 KiB
	maxInstructions int           // bytes of instructions, 64 KiB
	maxSkills       int           // bytes of the list of skills, 16 KiB
	maxPages        int           // of the agent's list of sessions, 10,000
}

// withDefaults returns o with defaults for the logger and the limits.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.limits = o.limits.withDefaults()
	return o
}

func (l limits) withDefaults() limits {
	l.startTimeout = cmp.Or(l.startTimeout, time.Minute)
	l.cancelGrace = cmp.Or(l.cancelGrace, 5*time.Second)
	l.endTimeout = cmp.Or(l.endTimeout, 2*time.Second)
	l.idle = cmp.Or(l.idle, 10*time.Minute)
	l.backoff = cmp.Or(l.backoff, 250*time.Millisecond)
	l.maxHeld = cmp.Or(l.maxHeld, 1000)
	l.maxHeldBytes = cmp.Or(l.maxHeldBytes, 4<<20)
	l.maxContext = cmp.Or(l.maxContext, 32<<10)
	l.maxInstructions = cmp.Or(l.maxInstructions, 64<<10)
	l.maxSkills = cmp.Or(l.maxSkills, 16<<10)
	l.maxPages = cmp.Or(l.maxPages, 10_000)
	return l
}

// process returns the options of the agent's process.
func (o Options) process(secrets *secret.Scrubber) process.Options {
	return process.Options{Logger: o.Logger, Secrets: secrets, Grace: o.limits.processGrace}
}

// connection returns the options of the connection to the agent.
func (o Options) connection(tap jsonrpc.Tap) jsonrpc.Options {
	return jsonrpc.Options{
		OpaqueParams: true, Tap: tap, MaxQueue: o.limits.maxQueue, Grace: 100 * time.Millisecond, Logger: o.Logger,
	}
}
