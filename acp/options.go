package acp

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/budget"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure a connection. Backend and Store are required; all other fields may be zero.
type Options struct {
	// Backend makes the backend of the connection, which closes it.
	Backend func() backend.Backend
	// Store keeps the sessions. Serve does not close it.
	Store sessionstore.Store
	// Workspace limits the number of roots and says which directories may be roots.
	Workspace workspace.Options
	// Folders returns the folders that the user declared for sessions with the working directory
	// cwd. They are the additional roots of a request that leaves out additionalDirectories, and of
	// no other. It may read disks. Nil means no folders.
	Folders func(cwd workspace.Dir) []Folder
	// Budgets returns what sessions with the working directory cwd may cost before the user is
	// asked whether to go on. Nil means any amount.
	Budgets func(cwd workspace.Dir) []Budget
	// KeepFolders matters for requests that leave out additionalDirectories. It gives a session
	// that is loaded or resumed the roots that it had when it was last opened, and a fork the roots
	// of its source. Roots among these that cannot be opened, and that Folders does not name, are
	// left out, and the user is told.
	KeepFolders bool
	// MaxLine is the length of the longest message that the client may send, in bytes. Default 64
	// MiB.
	MaxLine int
	// Trace, if not nil, is called with every message read from the client (sent is false) or about
	// to be written to it, without its line break. It is called for both directions concurrently,
	// must not keep or change line, and delays the connection while it runs. Messages may hold
	// secrets.
	Trace func(sent bool, line []byte)
	// Observe, if not nil, is told what happens on the connection, for metrics or an audit log. It
	// is called concurrently, and delays the connection while it runs. A panic is only logged.
	Observe func(Event)
	// MCPPolicy returns the user's policy for the MCP server called name. Nil means the zero policy
	// for all servers.
	MCPPolicy func(name string) mcp.Policy
	// Withheld are the names of environment variables that MCP servers do not inherit, such as that
	// of a model's key.
	Withheld []string
	// Environment is the environment of MCP servers, as NAME=VALUE; their configuration may add to
	// it. If it is nil, servers inherit the program's environment without Withheld, except that
	// servers of remote peers and servers found in roots get only the variables that programs need
	// to start, such as PATH and HOME.
	Environment []string
	// ConsentDir is the directory that stores which MCP servers found in roots the user allowed
	// permanently, which folders they added to sessions with /roots, and rules about permissions.
	// It is created when first needed. If it is empty, nothing is remembered and the user is asked
	// each time.
	ConsentDir string
	// Worktrees says where /worktree makes worktrees. Without it there is no such command.
	Worktrees Worktrees
	// SnapshotDir is the directory that keeps what the folders of a session had before its first
	// prompt, for /diff. It is created when first needed. If it is empty, or the peer is remote,
	// only what tool calls report is known.
	SnapshotDir string
	// RemoteRights are the parts of the backend that a remote peer may use besides the sessions
	// that it made through the adapter. Default: none.
	RemoteRights RemoteRights
	// Permissions returns the user's rules for sessions with the working directory cwd; nil means
	// that there are none. Then requests of the backend for permission reach the client unchanged.
	// Otherwise the rules answer them, and the user can make further rules, which are kept in
	// ConsentDir. With an invalid rule everything is asked.
	Permissions func(cwd workspace.Dir) *Permissions
	// ReplayRate limits the updates per second that a load replays after the first 512, so as not
	// to flood clients that read faster than they can handle. Negative means no limit. Default: no
	// limit for clients that are known to queue any number of updates, and 6,000 for all others.
	ReplayRate int
	// AgentCommand returns a command line that runs the agent of a session, for the error about a
	// session of another agent: acp-agent with --agent NAME, or with -- and a program. If it is
	// nil, the error uses the agent's name as the program.
	AgentCommand func(sessionstore.Agent) string
	// SetupArgs are the arguments that let the program configure itself in a terminal. Clients that
	// can start it in one are offered that as a way to sign in, unless the backend has its own.
	SetupArgs []string
	// Version is shown as the version of agentInfo, unless the backend has an agentInfo, and to MCP
	// servers. Default "dev".
	Version string
	// Logger receives messages for the person who runs the program. They contain no prompt text and
	// no secrets. Default: nothing is logged.
	Logger *slog.Logger

	tuning tuning
}

// agentName is the name in agentInfo, unless the backend has one.
const agentName = "acp-agent"

// tuning holds what only tests change.
type tuning struct {
	Wire     jsonrpc.Options
	Recorder sessionstore.RecorderOptions
	MCP      mcpclient.Options
	// MaxSessions is Limits.Sessions of Serve.
	MaxSessions int
	// Imports are the delays and the limit of imports of the backend's own sessions.
	Imports listing.Times
	// RescanWait is how long a prompt waits for the scan of the roots before it goes ahead with the
	// previous catalog.
	RescanWait time.Duration
	// TurnBytes is how many bytes of updates a turn may send and store.
	TurnBytes int64
	// SubagentBytes is how many bytes of updates of its subagents an open session stores.
	SubagentBytes int64
	// CancelGrace is how long a cancelled turn's backend may take before its prompt is answered
	// without it.
	CancelGrace time.Duration
	// SnapshotWait is how long a first prompt waits for the snapshots of its folders.
	SnapshotWait time.Duration
	// LeaseCheck is how often a running turn checks that no other process has taken its session
	// over.
	LeaseCheck time.Duration
	// SlowViewer is how long a client that views a session may take nothing of what waits for it.
	SlowViewer time.Duration
	// CloseGrace bounds the time to end the sessions and the backend once the connection has ended.
	CloseGrace time.Duration
}

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	if o.AgentCommand == nil {
		o.AgentCommand = func(a sessionstore.Agent) string {
			return strings.TrimSuffix("acp-agent -- "+a.Profile, " -- ")
		}
	}
	o.Folders, o.Budgets = orNone(o.Folders), orNone(o.Budgets)
	o.Permissions, o.MCPPolicy = orNone(o.Permissions), orNone(o.MCPPolicy)
	o.Worktrees.Copy = orNone(o.Worktrees.Copy)
	o.Workspace.Stalled = cmp.Or(o.Workspace.Stalled, new(workspace.Stalled))
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	t := &o.tuning
	t.RescanWait = cmp.Or(t.RescanWait, 5*time.Second)
	t.TurnBytes = cmp.Or(t.TurnBytes, 256<<20)
	t.SubagentBytes = cmp.Or(t.SubagentBytes, 256<<20)
	t.CancelGrace = cmp.Or(t.CancelGrace, 5*time.Second)
	t.SnapshotWait = cmp.Or(t.SnapshotWait, 5*time.Second)
	t.LeaseCheck = cmp.Or(t.LeaseCheck, time.Second)
	t.SlowViewer = cmp.Or(t.SlowViewer, 30*time.Second)
	t.CloseGrace = cmp.Or(t.CloseGrace, 900*time.Millisecond)
	t.Wire.Logger = o.Logger
	if o.Trace != nil {
		t.Wire.Tap = o.Trace
	}
	t.MCP.Logger, t.MCP.Name, t.MCP.Version = o.Logger, agentName, o.Version
	t.MCP.Withheld, t.MCP.Environment = o.Withheld, o.Environment
	return o
}

// orNone returns a function that returns nothing in place of nil.
func orNone[A, B any](f func(A) B) func(A) B {
	if f == nil {
		return func(A) (none B) { return none }
	}
	return f
}

// forRemote returns o, which has defaults, for a remote peer.
func (o Options) forRemote() Options {
	o.Workspace.Policy.OnlyAllowed = true
	o.SnapshotDir = ""
	if o.Environment == nil {
		o.tuning.MCP.Environment = mcpclient.BasicEnvironment()
	}
	return o
}

// Worktrees says where worktrees of git for the folders of a session are made.
type Worktrees struct {
	// Records is the directory in which is kept which worktrees were made, and Dir the one in which
	// they are made. Dir must not lie in Records, nor in a folder of a session.
	Records, Dir string
	// Copy returns patterns for the ignored files that worktrees of a session in cwd get. Default:
	// none.
	Copy func(cwd workspace.Dir) []string
}

// registry returns the registry of the worktrees, nil if none are made.
func (w Worktrees) registry() *worktree.Registry {
	if w.Dir == "" {
		return nil
	}
	return worktree.NewRegistry(w.Records, w.Dir)
}

// Permissions are the user's rules about what backends may do without asking. A rule is a text such
// as "read", "edit docs/**", "run go test ...", "tool SERVER.TOOL" or "fetch HOST";
// docs/permissions.md describes them all.
type Permissions struct {
	Allow []string // what is not asked about
	Ask   []string // what is asked about although it is allowed
	Deny  []string // what is refused
	Only  bool     // no other rules hold, such as remembered answers of the user
}

// Budget is the amount that sessions may cost, as their agents report it, before the user is asked
// whether to go on. It is not a quota: a turn that runs is not stopped, and the user may go on. Its
// fields:
//
//	Amount   float64
//	Currency string
//	Per      Period
//	Within   workspace.Dir
//
// Within selects the sessions whose working directory is this one or in it, or in a worktree of it,
// which count together. If it is zero, all of the user's sessions do.
type Budget = budget.Budget

// Period is the time for which a [Budget] is: [PerSession] or [PerDay].
type Period = budget.Period

// All periods.
const (
	PerSession = budget.PerSession
	PerDay     = budget.PerDay // in the program's time zone
)

// ParseBudget returns the budget that a text such as "5 USD per day" describes. The zero Budget is
// "".
func ParseBudget(text string) (Budget, error) { return budget.Parse(text) }
