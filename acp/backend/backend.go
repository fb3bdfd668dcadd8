package backend

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// Raw is a JSON value as it was sent, or is to be sent. It must not be modified.
type Raw = json.RawMessage

// Work is the second half of a call: it runs on its own goroutine, may block, and its
// result is the response. An error whose tree holds a *wire.Error is answered as that.
// It ends soon after the context of its call does.
type Work func() (Raw, error)

// Causes with which a turn's context ends, for [context.Cause]. A runtime need not
// tell them apart; it stops in either case.
var (
	// ErrCancelled: the client cancelled the turn, or closed, deleted, loaded or resumed its session.
	ErrCancelled = errors.New("turn cancelled")
	// ErrFenced: another process has opened the session since; nothing more can be recorded.
	ErrFenced = errors.New("session opened in another window; load it again")
	// ErrTurnOver is returned by a turn's Updates once its prompt was answered.
	ErrTurnOver = errors.New("the turn is over")
	// ErrClosed is returned by a Host whose session was closed or whose connection ended.
	ErrClosed = errors.New("session closed")
	// ErrTooManyUpdates is returned by [Host.Update] when more updates come before the lifecycle
	// response than are held.
	ErrTooManyUpdates = errors.New("too many updates before the session's response: 1,000 are held, and no more than 4 MiB")
)

// Backend answers the prompts of one connection. Its methods are called from several
// goroutines; Initialize returns before anything else is called, Close comes last.
type Backend interface {
	// Initialize runs within the client's initialize, whose params it is given. c
	// reaches the client for as long as the runtime lives. An error fails the client's
	// request; a later initialize may follow.
	Initialize(ctx context.Context, params Raw, c Client) (Info, error)

	// Open starts an activation of a session. ctx ends with the request: what lives on,
	// such as a child process, must not depend on it. The adapter commits it after Open
	// returns, and calls the session's Close if that fails, or when it is replaced or
	// ends. On error nothing of the session may remain. Several sessions may be opened
	// at once; one session's Opens never overlap.
	Open(ctx context.Context, a Activation, h Host) (Session, Opened, error)

	// Call takes a request that names no session and that the adapter does not serve
	// itself: authenticate, logout, unknown methods. Nil means method not found.
	Call(ctx context.Context, method string, params Raw) Work

	// Notify takes a notification that names no session. Unknown ones are ignored.
	Notify(ctx context.Context, method string, params Raw)

	// Close frees what the runtime holds: it ends child processes and waits for them.
	// It is called once, after the Close of every session, and ends with ctx.
	Close(ctx context.Context) error
}

// Session is one activation of a session. Its methods are called in the order of the
// session's lane, the first halves never concurrently with each other.
type Session interface {
	// Prompt starts a turn. The turn lasts until Work returns; its prompt is
	// already recorded. Updates of the turn go through u.
	Prompt(ctx context.Context, params Raw, u Updates) Work

	// Call takes a request for the session that the adapter does not serve itself:
	// session/set_mode, session/set_config_option, unknown ones. It may come during
	// a turn. Nil means method not found.
	Call(ctx context.Context, method string, params Raw) Work

	// Notify takes a notification for the session, other than session/cancel. Unknown ones
	// are ignored.
	Notify(ctx context.Context, method string, params Raw)

	// Cancel is called exactly once for every turn that ends early, whoever ends it: after
	// its Prompt and before its Work has returned, when the turn's context has just ended. params are
	// those of the client's session/cancel, nil if something else ended the turn. A
	// turn that ends before its Prompt is answered without it. It must not block.
	Cancel(params Raw)

	// Close ends the activation. It is called once, after the last turn was answered. What
	// it shares with a later activation that was given it as Previous it leaves alone.
	Close(ctx context.Context) error
}

// Info is what a runtime is and can do.
type Info struct {
	// Kind and Profile name the agent that sessions belong to (clause A31), such as
	// "explore" and "", or "proxy" and the downstream agent. They are stored with each session and
	// must be the same from run to run. Kind is not empty.
	Kind, Profile string
	// Command is the command line that reaches this agent again, for error messages:
	// "acp-agent -- opencode acp".
	Command string
	// Initialize is an object of members for the initialize response: agentCapabilities
	// (promptCapabilities, mcpCapabilities, auth …), authMethods, agentInfo, _meta, and what
	// the adapter does not know. The adapter sets protocolVersion and the capabilities
	// that it supplies. Nil is an empty object.
	Initialize Raw
	// MCP says who connects a session's MCP servers.
	MCP MCPOwner
}

// MCPOwner says who connects the MCP servers that a client gives a session.
type MCPOwner int

const (
	// AdapterConnects: the adapter does, as far as it can, and gives the runtime their tools.
	AdapterConnects MCPOwner = iota
	// BackendConnects: the runtime does, from the mcpServers of the activation's params;
	// the transports that it takes are in its Initialize's mcpCapabilities.
	BackendConnects
)

// Cause says which request activates a session.
type Cause string

// The causes of an activation.
const (
	New    Cause = "session/new"
	Load   Cause = "session/load"
	Resume Cause = "session/resume"
	Fork   Cause = "session/fork"
)

// Activation is what a session is opened with.
type Activation struct {
	Cause Cause
	// Params are the request's, without sessionId, otherwise as the client sent them: cwd,
	// additionalDirectories and mcpServers are validated; _meta and unknown members are there.
	Params Raw
	// State is what the session last saved with [Host.SaveState], nil if nothing. A fork
	// is given its source's. Owned by the runtime.
	State []byte
	// Previous is the live activation that a load or resume replaces, nil if there is none. Its
	// turn may be running until Stop.
	Previous Session
	// Stop is the point of no return of a load or resume: it cancels Previous's turn and waits
	// until that was answered. The adapter calls it after Open; a runtime whose Open cannot go on
	// while the turn runs calls it itself, once nothing else is likely to fail. If Open fails
	// after Stop, the session goes on with Previous. Calls after the first do nothing.
	Stop func(ctx context.Context) error
	// History yields the stored updates in order, none for a new session. It may be
	// ranged over while Open runs and again later, as long as the session is open; it reads the store in
	// pages. An error ends it. For a fork it is the copied history.
	History iter.Seq2[Update, error]
}

// Opened is what an activation adds to the response.
type Opened struct {
	// Result is an object of members for the response: modes, configOptions, _meta. Nil
	// for none. A sessionId in it is ignored.
	Result Raw
	// Replay says where a load's history comes from.
	Replay Replay
}

// Replay says where the history that a load shows the client comes from.
type Replay int

const (
	// FromStore: the adapter replays what is stored.
	FromStore Replay = iota
	// FromBackend: the runtime sent the history during Open, through [Host.Replay]; it
	// was passed on as it came and replaces the stored history with the commit.
	FromBackend
)

// Update is the params of a session/update without sessionId: an object with the member
// "update", and _meta or members that the sender had beside it.
type Update = json.RawMessage

// Updates takes what the client is shown.
type Updates interface {
	// Update sends u to the client and records it. It blocks while the client does not
	// read, and fails when ctx ends, when its turn was answered ([ErrTurnOver]) or when the
	// session is closed or fenced. Updates arrive in the order of the calls; concurrent calls are safe.
	// u is not modified and may be kept; line breaks between its tokens are taken out.
	Update(ctx context.Context, u Update) error
}

// Client reaches the client. Every call is checked first: the client advertised the
// method's capability, and the paths that its params declare lie in the session's roots
// (clause A26). A refusal is a *wire.Error and never reaches the client. What needs a
// session is refused outside of one, and session/update goes through [Updates] only.
//
// Client and Host are implemented by the adapter alone and may grow; Runtime and Session
// grow by optional interfaces.
type Client interface {
	// Call sends a request, in the order of the calls, without blocking; Work waits for the
	// response. When ctx ends first, the client is sent $/cancel_request and Work
	// returns ctx's cause.
	Call(ctx context.Context, method string, params Raw) Work
	// Notify sends a notification. It blocks while the client does not read.
	Notify(ctx context.Context, method string, params Raw) error
}

// Host is what the adapter offers one session. It is safe for concurrent use. All of
// it fails with [ErrClosed] once the session was closed.
type Host interface {
	// Client sends the session's requests and notifications: the adapter adds the
	// session's id to params.
	Client
	// Updates outside turns. Until the response of the lifecycle request is on the wire
	// they are held, in order and without blocking, up to 1,000 and 4 MiB; they are dropped if the
	// activation fails.
	Updates
	// Replay sends the client, during the Open of a load, an update of the history that the
	// runtime has, as it comes. It implies Stop. It blocks while the client does not read.
	Replay(ctx context.Context, u Update) error
	// Workspace is the session's opened roots. It stays open as long as the session.
	Workspace() *workspace.Workspace
	// Catalog is what the session's roots hold for agents: instructions, skills, commands. It is looked at anew
	// before each turn; the value that a call returns does not change.
	Catalog() *discovery.Catalog
	// Tools are those of the MCP servers that the client gave the session, none if the runtime connects
	// them itself. A runtime need not ask for them.
	Tools() Tools
	// StartServer starts an MCP server of the catalogue, in the folder that it was found in. The user is asked first, unless
	// they allowed it for good as it is. It takes the place of one that was found under the same name, never of the client's
	// own. Its tools are there from then on, until the session is loaded or resumed; each call of one asks.
	StartServer(ctx context.Context, server discovery.Artifact) error
	// SaveState stores a small value of the runtime's own with the session, such as a
	// child's session id. During Open it becomes durable with the commit. At most 64 KiB.
	SaveState(ctx context.Context, state []byte) error
}

// Error is a JSON-RPC error. A backend that returns one, perhaps wrapped, decides what the client is answered; the client
// learns of other errors as internal errors with their text.
type Error = jsonrpc.Error

// Errorf returns an Error with a code of JSON-RPC or ACP and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return jsonrpc.Errorf(code, format, args...)
}

// Foreign is implemented by a runtime that knows sessions of its own, which the
// adapter imports into the store so that a list has one source.
type Foreign interface {
	// Key is what the runtime itself calls the session that saved state, "" if the state
	// names none. Two states with the same key are the same session, so that one that
	// was opened here is not imported as another. It is stable from run to run.
	Key(state []byte) string
	// Sessions yields the sessions that the runtime knows, newest first. cwd restricts
	// them to one working directory; nil asks for all. An error ends the iteration.
	Sessions(ctx context.Context, cwd *workspace.Dir) iter.Seq2[ForeignSession, error]
	// Delete removes the session that state names, for good. One that is gone is no error.
	Delete(ctx context.Context, state []byte) error
}

// ForeignSession is a session that a runtime knows and the store may not.
type ForeignSession struct {
	// State is what Activation.State carries when the session is opened. Its Key is not empty.
	State []byte
	// Roots is its root set, as far as the runtime knows.
	Roots workspace.Roots
	// Title is one line, "" if there is none.
	Title string
	// Updated is its last activity, zero if not known.
	Updated time.Time
}
