package acp

import (
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure [Serve]. Runtime and Store are needed; the rest has defaults.
type Options struct {
	// Runtime makes what answers the prompts.
	Runtime backend.Factory
	// Store keeps the sessions. Serve does not close it.
	Store sessionstore.Store
	// Workspace bounds root sets and says which are allowed.
	Workspace workspace.Options
	// Wire bounds the connection.
	Wire jsonrpc.Options
	// Recorder says how histories are committed.
	Recorder sessionstore.RecorderOptions
	// Name and Version are shown as agentInfo where the runtime has none. Default "acp-agent", "dev".
	Name, Version string
	// Discovery says what is looked for in a session's roots, and bounds it.
	Discovery discovery.Options
	// MCP configures the MCP servers of sessions; Name, Version and Logger are filled in from the others here.
	MCP mcpclient.Options
	// MCPPolicy is the user's policy for the server that a client calls name. Default: the zero Policy for all.
	MCPPolicy func(name string) mcpclient.Policy
	// Starter bounds how many MCP servers start at once. Those who serve several connections in a process share one
	// between them. Default: one of this connection.
	Starter *mcpclient.Starter
	// Consents remembers which MCP servers that were found in roots may be started. Default: each is asked for anew.
	Consents *mcpclient.Consents
	// MaxSessions is the most sessions that are active at once. Default 1,000.
	MaxSessions int
	// ReplayRate is how many updates a second a load replays at most, behind its first 512, so that a client that
	// reads faster than it handles what it reads is not flooded; such clients keep no more than so many.
	// Default 6,000; negative for no bound.
	ReplayRate int
	// ImportEvery is how old the list of a runtime's own sessions may be when a client asks for sessions; an older
	// one is asked for again. ImportWait is how long the client's list waits for it, before it is answered from the
	// store and the rest comes with a later one. ImportMax is how many of them, the newest, are listed.
	// Defaults 10 s, 2 s and 1,000.
	ImportEvery, ImportWait time.Duration
	ImportMax               int
	// RescanWait is how long a prompt waits for the scan of the roots, which usually takes a few milliseconds. After that
	// the prompt uses what was found before, and the next one what the scan finds. Default 5 s.
	RescanWait time.Duration
	// CancelGrace is how long a cancelled turn's runtime may take before its prompt is answered
	// without it. Default 5 s.
	CancelGrace time.Duration
	// CloseGrace bounds the end of sessions and runtime when the connection has ended. Default 900 ms.
	CloseGrace time.Duration
	// Logger takes what a person running the program should know. It is given no prompt
	// text and no secrets. Default: discarded.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "acp-agent"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 1000
	}
	if o.ReplayRate == 0 {
		o.ReplayRate = replayRate
	}
	if o.ImportEvery == 0 {
		o.ImportEvery = 10 * time.Second
	}
	if o.ImportWait == 0 {
		o.ImportWait = 2 * time.Second
	}
	if o.ImportMax == 0 {
		o.ImportMax = 1000
	}
	if o.RescanWait == 0 {
		o.RescanWait = 5 * time.Second
	}
	if o.CancelGrace == 0 {
		o.CancelGrace = 5 * time.Second
	}
	if o.CloseGrace == 0 {
		o.CloseGrace = 900 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wire.Logger == nil {
		o.Wire.Logger = o.Logger
	}
	if o.MCP.Logger == nil {
		o.MCP.Logger = o.Logger
	}
	if o.MCP.Name == "" {
		o.MCP.Name, o.MCP.Version = o.Name, o.Version
	}
	if o.Starter == nil {
		o.Starter = mcpclient.NewStarter(mcpclient.StarterOptions{})
	}
	return o
}
