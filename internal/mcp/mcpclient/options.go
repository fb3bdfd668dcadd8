package mcpclient

//lint:file-ignore SA1019 the MCP SDK deprecates sampling (SEP-2577); existing servers still use it

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a [Set].
type Options struct {
	// Logger receives the servers' lifecycle events, stderr and log messages. Default: discarded.
	Logger *slog.Logger
	// Name and Version identify acp-agent to the servers. Default "acp-agent", "dev".
	Name, Version string
	// Elicitation are the ways in which the host can ask the user questions of servers: "form",
	// "url".
	Elicitation []string
	// Withheld are the names of our environment variables that servers do not inherit unless their
	// configuration names them.
	Withheld []string
	// Environment, if not nil, is the environment of servers, as NAME=VALUE, in place of ours.
	Environment []string
	// Wait bounds how long a listing or a call waits for a server to become ready, and then for
	// what it lists, or a resource or prompt. Default 15 s.
	Wait time.Duration

	limits limits // zero fields mean the defaults; set by tests
}

// limits bound what a server may use and how long it is waited for.
type limits struct {
	StartTimeout time.Duration // to start and answer initialize; some download themselves first
	CallTimeout  time.Duration // to answer a tool call
	SettleMax    time.Duration // to become ready, answer pings and read answers to its requests
	CheckRoots   time.Duration // interval between checks that the roots exist
	Backoff      time.Duration // before the first restart; doubles up to maxBackoff
	MaxRestarts  int           // failures in a row before giving up the server
	MaxMessage   int           // bytes of one message; a longer one ends the connection
	MaxRequests  int           // requests of a server whose answers it has not read
	MaxListBytes int           // bytes of JSON of one list; the rest is left out
}

// Limits that no test changes.
const (
	maxServers    = 64               // of a set
	maxItems      = 1000             // tools or resources of a server
	maxBackoff    = 30 * time.Second // between restarts
	stableAfter   = time.Minute      // time after which earlier failures are forgotten
	notifyTimeout = time.Second      // to take a notification
	stopTimeout   = 2 * time.Second  // to end before it is killed
	maxLogText    = 4 << 10          // bytes of a log message
)

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Name, o.Version = cmp.Or(o.Name, "acp-agent"), cmp.Or(o.Version, "dev")
	o.Wait = cmp.Or(o.Wait, 15*time.Second)
	l := &o.limits
	l.StartTimeout = cmp.Or(l.StartTimeout, time.Minute)
	l.CallTimeout = cmp.Or(l.CallTimeout, 10*time.Minute)
	l.SettleMax = cmp.Or(l.SettleMax, 5*time.Second)
	l.CheckRoots = cmp.Or(l.CheckRoots, 5*time.Second)
	l.Backoff = cmp.Or(l.Backoff, 500*time.Millisecond)
	l.MaxRestarts = cmp.Or(l.MaxRestarts, 5)
	l.MaxMessage = cmp.Or(l.MaxMessage, 16<<20)
	l.MaxRequests = cmp.Or(l.MaxRequests, 256)
	l.MaxListBytes = cmp.Or(l.MaxListBytes, 4<<20)
	return o
}

// ServerID names a server of a [Set].
type ServerID struct {
	// Name is the configured name. Several servers may have it.
	Name string
	// Prefix is unique in the set and begins the names of the server's tools.
	Prefix string
}

// Host answers the questions of a [Set]'s servers. The session implements it. Its methods are
// called from several goroutines. The contexts end with the server.
type Host interface {
	// Elicit asks the user a question of a server. The params are checked, and their Mode is one of
	// [Options].Elicitation. A server asks one question at a time.
	Elicit(ctx context.Context, s ServerID, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// ElicitComplete is called when the user has done what a server wanted at a URL.
	ElicitComplete(ctx context.Context, s ServerID, id string) error
	// SignIn asks the user to sign in to a server at page. tokenHost is the host that will issue
	// the tokens. SignIn returns an error if the user declines. Otherwise it returns when it can do
	// nothing more, or when ctx ends because they have signed in.
	SignIn(ctx context.Context, s ServerID, page *url.URL, tokenHost string) error
	// HasModel reports whether servers may ask the session's model.
	HasModel() bool
	// Sample answers a request to the model, if there is one. The params are checked. ctx ends with
	// the calls during which the server asks. A server has at most one such request at a time.
	Sample(ctx context.Context, s ServerID, p *mcp.CreateMessageWithToolsParams) (
		*mcp.CreateMessageWithToolsResult, error)
	// Show shows the user a message about the servers.
	Show(ctx context.Context, message string) error
}
