package backend

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Raw is a JSON value exactly as it was received or will be sent. It must not be modified.
type Raw = json.RawMessage

// Work is the second half of a call. It runs on its own goroutine, may block until the context of
// the call ends, and returns the result of the response. If it returns an [*Error], perhaps
// wrapped, the client receives that error.
type Work func() (Raw, error)

// Errors that the adapter's methods return, and causes of contexts.
var (
	// ErrCancelled is the cause of a turn's context when the client cancelled the turn, or closed,
	// deleted, loaded or resumed its session.
	ErrCancelled = errors.New("turn cancelled")
	// ErrFenced is the cause of a turn's context, and the error of updates, when another process
	// has opened or deleted the session, so that nothing more can be stored.
	ErrFenced = errors.New("session opened in another window; load it again")
	// ErrTurnOver is returned by the Updates of a turn whose prompt was answered.
	ErrTurnOver = errors.New("the turn is over")
	// ErrClosed is returned by the Host of a session that was closed or whose connection ended.
	ErrClosed = mcp.ErrClosed
	// ErrUnknownSession is returned by Open if Activation.MustExist is set and the backend does not
	// know the session. It may be wrapped together with an [*Error] that says why.
	ErrUnknownSession = errors.New("the agent does not know the session")
	// ErrPartial ends a list of a [Foreign] backend that may lack sessions; what came before it is
	// valid.
	ErrPartial = errors.New("the list may lack sessions")
	// ErrTooManyUpdates is returned by the Update method of a Host if too many updates come before
	// the lifecycle response.
	ErrTooManyUpdates = errors.New(
		"too many updates before the session's response: the limit is 1,000 updates and 4 MiB")
)

// Backend answers the prompts of one connection. Its methods are called from several goroutines.
// Initialize returns before any other method is called, and Close is called last. Interfaces that a
// Backend may also implement: [Foreign].
type Backend interface {
	// Initialize serves the client's initialize request with these params. c reaches the client as
	// long as the backend lives. An error fails the request; the client may then send another one.
	Initialize(ctx context.Context, params Raw, c Client) (Info, error)

	// Open opens a session. ctx ends with the request, so anything that lives longer, such as a
	// child process, must not depend on it. If Open returns an error, it must clean up. Sessions
	// may be opened concurrently, but not the same one.
	Open(ctx context.Context, a Activation, h Host) (Session, Opened, error)

	// Call serves a request that names no session and that the adapter does not serve:
	// authenticate, logout, unknown methods. A nil Work means that the method does not exist.
	Call(ctx context.Context, method string, params Raw) Work

	// Notify handles a notification that names no session. Unknown ones are ignored.
	Notify(ctx context.Context, method string, params Raw)

	// Close frees the backend's resources and waits for child processes to exit, but not longer
	// than ctx lasts. It is called once, after the Close of every session.
	Close(ctx context.Context) error
}

// Session is one activation of a session. It may also implement [Closer], [Parent] and [Sampler].
// Its methods are called in the order of the session's requests. Prompt, Call, Notify and Cancel
// are never called concurrently.
type Session interface {
	// Prompt starts a turn, which lasts until Work returns. The prompt is already stored. Updates
	// of the turn are sent to u.
	Prompt(ctx context.Context, params Raw, u Updates) Work

	// Call serves a request for the session that the adapter does not serve: session/set_mode,
	// session/set_config_option, unknown methods. It may be called during a turn. A nil Work means
	// that the method does not exist.
	Call(ctx context.Context, method string, params Raw) Work

	// Notify handles a notification for the session other than session/cancel. Unknown ones are
	// ignored.
	Notify(ctx context.Context, method string, params Raw)

	// Cancel tells the session that running turns end early: those whose contexts have ended. It is
	// called once for turns that end together, after their contexts have ended, unless their Work
	// has returned. params are those of the client's session/cancel, or nil if they end for another
	// reason. Cancel must not block.
	Cancel(params Raw)

	// Close ends the activation. It keeps resources that it shares with an activation which
	// replaces this one, as its Previous.
	Close(ctx context.Context) error
}

// Closer is implemented by a [Session] that passes the client's session/close on to an agent.
type Closer interface {
	// CloseFor is called in place of Close for a session/close with these params, without
	// sessionId. It returns members for the response, or nil.
	CloseFor(ctx context.Context, params Raw) (Raw, error)
}

// Confined is implemented by a [Session] whose agent may be in a sandbox.
type Confined interface {
	// SandboxText says in Markdown what the sandbox lets the agent do, "" without one.
	SandboxText() string
}

// Parent is implemented by a [Session] that may have subagents. Each has a key, which begins
// with [sessionstore.SubagentPrefix]. The backend sends its updates as those of the session, made
// with [sessionstore.OfSubagent], and its requests with Host.For. In updates and requests, the keys
// stand for the ids of the subagents, and [sessionstore.ParentKey] for that of the session; the
// adapter replaces them.
type Parent interface {
	// CancelSubagent passes on the client's session/cancel for a subagent that may be cancelled.
	// It must not block.
	CancelSubagent(key string, params Raw)
	// HasSubagent reports whether the session has this subagent now. Others may be in its history.
	HasSubagent(key string) bool
}

// Info describes a backend.
type Info struct {
	// Kind and Profile identify the agent that sessions belong to, such as "explore" and "", or
	// "proxy" and the name of the downstream agent. They are stored with each session and must not
	// change from run to run. Kind must not be empty.
	Kind, Profile string
	// Initialize is the backend's part of the initialize response: agentCapabilities
	// (promptCapabilities, mcpCapabilities, auth …), authMethods, agentInfo, _meta and members
	// unknown to the adapter. The adapter adds protocolVersion and the capabilities that it
	// implements. Nil is an empty object.
	Initialize Raw
	// Doubt tells the user why the agent may have other sessions than these, "" if nothing is in
	// doubt. The adapter shows it until the user has used one of them.
	Doubt string
	// ConnectsServers says that the backend connects the mcpServers in the params of an activation,
	// of which those with a [FoundDir] come from files in roots. Its mcpCapabilities in Initialize
	// state the transports that it supports. Otherwise the adapter connects the servers and offers
	// their tools as [Host.Tools].
	ConnectsServers bool
	// Sandbox says how the agent's processes are restricted, for the answer to /roots: "off",
	// "write" or "strict", and what holds for the client's terminals. It is "" for a backend
	// without processes.
	Sandbox string
	// Restricted says that the agent's processes are restricted. So the client is not asked for
	// their files: a process could exchange a directory in the path for a link while the client
	// opens it. The adapter reads and writes them by handle.
	Restricted bool
	// ServerSandbox restricts the stdio servers that the adapter starts a second time, for
	// [MCPCommand], if the backend connects them: as the backend's own processes are restricted,
	// since these may have changed the servers' files.
	ServerSandbox Sandbox
	// OverlappingTurns says that Prompt may be called while a turn is running, so that the backend
	// decides what happens to both turns. For any other backend the adapter queues one prompt and
	// rejects further ones.
	OverlappingTurns bool
	// NeverAsks says that the agent behind the backend asks for no permission, so that rules about
	// permissions do not hold for it.
	NeverAsks bool
	// AsksLittle says for users when an agent asks that by default does not ask before it changes
	// files and runs commands. It is "" for others.
	AsksLittle string
	// SystemPrompts says what happens to a systemPrompt in the requests that open sessions.
	SystemPrompts SystemPrompts
	// Usage says how to count what the agent reports to have used.
	Usage Usage
}

// Usage says what the numbers mean that an agent reports. The cost in a usage_update is the total
// of the session so far.
type Usage struct {
	// Restarts says that the total begins again at zero whenever a session is opened. Otherwise a
	// total that is less than before has begun again.
	Restarts bool
	// Tokens says what the usage in the response to a prompt counts.
	Tokens TokenCount
}

// TokenCount says what the tokens in the response to a prompt are. ACP 1 says both.
type TokenCount int

const (
	// TokensUnknown means that the agent reports none, or that it is not known what they are.
	TokensUnknown TokenCount = iota
	// TokensOfTurn are the tokens of the turn that has ended.
	TokensOfTurn
	// TokensOfSession are the tokens of the session so far.
	TokensOfSession
)

// SystemPrompts says what happens to the member systemPrompt, the instructions of a client, of the
// requests that open sessions.
type SystemPrompts int

const (
	// SystemPromptsUnchecked means that the backend checks them, or the agent behind it. It
	// advertises in Info.Initialize what it supports.
	SystemPromptsUnchecked SystemPrompts = iota
	// SystemPromptsServed means that the backend follows texts, in addition to its own instructions
	// or in their place, as the member's mode "append" or "override" says. The adapter advertises
	// that and refuses everything else.
	SystemPromptsServed
	// SystemPromptsRefused means that the adapter refuses them.
	SystemPromptsRefused
)

// Cause is the method of the request that activates a session. When a command of the adapter opens
// it again, such as [RootsCommand], it is Resume.
type Cause string

// All causes.
const (
	New    Cause = protocol.SessionNew
	Load   Cause = protocol.SessionLoad
	Resume Cause = protocol.SessionResume
	Fork   Cause = protocol.SessionFork
)

// Activation says which session to open, and how.
type Activation struct {
	Cause Cause
	// Params are the params of the request as the client sent them, without sessionId. The adapter
	// has validated cwd, additionalDirectories and mcpServers. If the client left
	// additionalDirectories out, the adapter has filled in the folders that the user declared, if
	// any.
	Params Raw
	// State is the value last saved with [Host.SaveState], or nil. A fork is given the state of its
	// source.
	State []byte
	// MustExist says that nothing of the session's conversation is stored; only the backend may
	// know it. Open must fail with [ErrUnknownSession] rather than start a new session.
	MustExist bool
	// Unlisted says that the backend's list of sessions ([Foreign]) does not have it. If Open also
	// finds nothing of its conversation, it fails as with MustExist: some agents load any id.
	Unlisted bool
	// Previous is the active session that a load or resume replaces, or nil. Its turn may be
	// running until Stop.
	Previous Session
	// Stop ends the turn of Previous and waits until its prompt has been answered. Without such a
	// turn it does nothing. The adapter calls it after Open. A backend whose Open needs the turn to
	// end calls it when nothing else is likely to fail. If Open fails after Stop, Previous stays
	// active. Once Open has returned, Stop returns [ErrClosed].
	Stop func(ctx context.Context) error
	// History yields the stored updates in order; those of its source for a fork. It may be used
	// while Open runs, and later as long as the session is open. It reads the store in pages. An
	// error ends it.
	History iter.Seq2[Update, error]
}

// Opened describes an opened session.
type Opened struct {
	// Result has members of the response: modes, configOptions, _meta. Nil is an empty object.
	Result Raw
	// Notice tells the user what happened to the session. It is shown once, and not recorded.
	Notice string
	// Superseded is the state of a session of a [Foreign] backend that this one replaces, or nil.
	// The adapter deletes that session in the backend once the activation is stored.
	Superseded []byte
}

// Update is the params of a session/update without sessionId: an object with the member "update",
// and possibly _meta and others. Create one with [ParseUpdate], [NewUpdate], [Text] or [Thought].
type Update = sessionstore.Update

// Updates receives updates for the client: those of a turn, or of a session outside turns ([Host]).
type Updates interface {
	// Update sends u to the client and records it, in the order of the calls. It blocks while the
	// client does not read, and fails when ctx ends, the turn is over or the session is closed or
	// fenced. u may be kept.
	Update(ctx context.Context, u Update) error
	// Commit is Update, but stores u and everything before it before the client sees u. A backend
	// that changes files reports each change with Commit, before and after it, so that no change is
	// lost from the history if the program is killed. Updates that are buffered before a lifecycle
	// response are stored after it.
	Commit(ctx context.Context, u Update) error
}

// Client sends requests and notifications to the client. A message is rejected with an [*Error],
// and not sent, if the client did not advertise the capability for its method, or if its paths are
// outside the session's folders. There is one exception: the adapter reads a file outside if the
// user allows it. Outside a session, methods that need a session are rejected. session/update is
// not sent this way, but with [Updates] and [Host].Replay.
//
// Client and Host are implemented by the adapter only and may grow. Backend and Session may grow by
// optional interfaces.
type Client interface {
	// Call sends a request, in the order of the calls and without blocking. Work waits for the
	// response. If ctx ends first, the client is sent $/cancel_request, and Work returns ctx's
	// cause.
	Call(ctx context.Context, method string, params Raw) Work
	// Notify sends a notification. It blocks while the client does not read.
	Notify(ctx context.Context, method string, params Raw) error
}

// Sender says for whom a backend sends messages, and what they were.
type Sender struct {
	// Subagent is the key of a subagent, "" for the session itself. Paths in messages of a subagent
	// must also be in Roots. See [Parent].
	Subagent string
	Roots    workspace.Roots
	// Made are the params as the agent made them, about which rules decide, if they are passed on
	// in another form because of the agent's sandbox.
	Made Raw
	// Decided says that no rule need decide, because the backend has asked before.
	Decided bool
}

// Host offers a session the adapter's services. Its methods are safe for concurrent use, and fail
// with [ErrClosed] once the session was closed.
type Host interface {
	// Client sends the session's requests and notifications. The adapter adds the session id to
	// their params, and lets the user's rules about files and commands decide.
	Client
	Asker
	// Updates receives updates outside turns. Until the lifecycle response is on the wire they are
	// buffered without blocking, up to 1,000 and 4 MiB. They are dropped if the activation fails.
	Updates
	// Replay takes an update of the history that the backend has itself, during the Open of a load
	// or resume. If nothing is stored, it records the update, and a load sends it to the client,
	// which blocks while the client does not read. Otherwise the adapter shows the stored history,
	// to which it adds what follows there in the backend's. The backend must call Stop before it.
	Replay(ctx context.Context, u Update) error
	// For returns a client for other messages than those of the session as its agent made them.
	For(Sender) Client
	// Workspace returns the session's open roots, in which the user's rules hold. They stay open as
	// long as the session.
	Workspace() *workspace.Workspace
	// Restrictions returns the user's rules that ask about and deny what the agent does, as the
	// user has written them. They hold for Workspace, Client and Ask.
	Restrictions() (ask, deny []string)
	// Ran says that a command has run. If the user has allowed it with the answer Always, what it
	// changed itself is not a reason to ask again. before and after describe it with its files as
	// they were and are.
	Ran(before, after Action)
	// Catalog returns what the session's roots contain for agents: instructions, skills, commands
	// and MCP servers. It is updated before each turn; a returned Catalog does not change.
	Catalog() *discovery.Catalog
	// Tools returns the tools of the MCP servers that the client configured. If the backend
	// connects the servers, each is connected a second time when one of them is used.
	Tools() Tools
	// SaveState stores up to [MaxState] bytes with the session for the backend's own use, such as a
	// child's session id. During Open it is stored together with the activation.
	SaveState(ctx context.Context, state []byte) error
}

// MaxState is the maximum size of the state that a backend may save, in bytes.
const MaxState = 64 << 10

// Foreign is implemented by a backend that keeps sessions itself. The adapter imports them into
// the store, so that lists have one source.
type Foreign interface {
	// Key returns the backend's own id of the session that saved state, or "". Two states with the
	// same key belong to the same session, so that a session opened here is not imported as another
	// one. It must not change from run to run.
	Key(state []byte) string
	// State is the inverse of Key: it returns a state for the session that the backend may have
	// under this id, or nil if there can be none.
	State(key string) []byte
	// Sessions yields the backend's sessions in any order: those with the working directory cwd, or
	// all if it is nil. An error ends the iteration. Without an error the list is complete, and a
	// session that was listed before and is missing now counts as deleted. The error is
	// [ErrPartial] if there may be other sessions, and [errors.ErrUnsupported] if the backend has
	// no list.
	Sessions(ctx context.Context, cwd *workspace.Dir) iter.Seq2[ForeignSession, error]
	// CallStored passes a request about the session that state belongs to on to the agent:
	// session/delete, session/set_title, session/archive, session/unarchive or session/options. The
	// session need not be open. params are those of the client without sessionId. It returns nil,
	// without an error, if the agent does not serve the method or does not know the session.
	CallStored(ctx context.Context, method string, state []byte, params Raw) (Raw, error)
}

// ForeignSession is a session of a [Foreign] backend.
type ForeignSession struct {
	// State is passed as Activation.State when the session is opened. Its Key must not be empty.
	State []byte
	// Cwd is the session's working directory, zero if the backend does not know it. There are no
	// other roots, because only the client may choose them: it would take over those of a listed
	// session.
	Cwd workspace.Dir
	// Title is one line, or "".
	Title string
	// Updated is the time of the last activity, zero if unknown.
	Updated time.Time
	// Archived says that the backend lists it as archived.
	Archived bool
	// Meta is its _meta in the backend's list, or nil.
	Meta Raw
}

// Error is a JSON-RPC error with the fields Code (int), Message (string) and Data (Raw, nil for
// none). A backend that returns an *Error, perhaps wrapped, decides what the client receives. Other
// errors are sent as internal errors with their text.
type Error = jsonrpc.Error

// Sandbox says what a process may do by itself. The comment of [mcp.Sandbox] has its fields.
type Sandbox = mcp.Sandbox

// SandboxMode is how much a process is restricted: SandboxOff, SandboxWrite or SandboxStrict.
type SandboxMode = sandbox.Mode

// The modes of the sandbox.
const (
	// SandboxOff does not restrict it.
	SandboxOff = sandbox.Off
	// SandboxWrite lets it change files only in the session's roots, the temporary directory and
	// its own state.
	SandboxWrite = sandbox.Write
	// SandboxStrict lets it also read only there, and in directories of the system, of its program
	// and of PATH.
	SandboxStrict = sandbox.Strict
)
