package mcpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
)

// TooManyError reports more servers than a session may have.
type TooManyError struct{ Count, Limit int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d MCP servers exceed the limit of %d per session", e.Count, e.Limit)
}

// limitError reports that a server exceeded a limit, so that its connection was closed.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func messageTooLong(limit int) error {
	size := text.Size(limit)
	return &limitError{"it sent a message of more than " + size + ", which is the limit"}
}

var (
	errStopped        = errors.New("the server was stopped")
	errClosedByServer = errors.New("it closed the connection")
	errEndedInCall    = errors.New("it ended during the call; the log and the list of servers say " +
		"why, and it restarts when it is next needed")
	errEndedBefore = errors.New("it ended before the call was sent")
	errNoSuchRoot  = errors.New("no such root")
	errNotMCP      = errors.New("it does not speak MCP; check its command")
	errNotMCPURL   = errors.New("it does not speak MCP; check its URL")
	errNotAllowed  = errors.New("it was not started")
	errDirectory   = errors.New("cannot start it in its working directory")
)

// describeError returns the text of err. If a server's answer could not be decoded, it says so
// without naming Go types.
func describeError(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err.Error()
	}
	field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
	if field == "" {
		return "the answer has a value of the wrong type"
	}
	return "the answer has a value of the wrong type in " + text.Quote(field)
}

// transportError is an error of the HTTP transport. It says all that a user needs, without the
// request that the MCP SDK was sending. It does not unwrap: that the connection of one request has
// ended does not mean that the server's has.
type transportError struct {
	fault fault
	text  string
	code  int           // the status of a refusal
	later time.Duration // after which the server wants to be asked again, or 0
}

func (e *transportError) Error() string { return e.text }

// fault is the kind of a transportError.
type fault int

const (
	none        fault = iota // the error is another one
	refused                  // the response is not one of MCP
	lostSession              // the server no longer knows the session: it handled nothing
	unreachable              // nothing of the request was sent
	lostAnswer               // the request was sent, and its answer was lost
)

func newUnreachable(cause error) error {
	return &transportError{fault: unreachable, text: "it cannot be reached: " + cause.Error()}
}

func newLostAnswer(cause error) error {
	why := cause.Error()
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		why = "it closed the connection"
	}
	return &transportError{fault: lostAnswer,
		text: "its answer was lost (" + why + "), so it may have done what it was asked to do"}
}

// transportErrorOf returns the transportError in err, or an empty one.
func transportErrorOf(err error) transportError {
	if e, ok := errors.AsType[*transportError](err); ok {
		return *e
	}
	return transportError{}
}

// serverError adds the name of the server to err.
func serverError(server string, err error) error {
	return fmt.Errorf("MCP server %s: %w", text.Name(server), err)
}

// timeoutError reports that a server has not done something, such as "answered initialize", within
// a time.
func timeoutError(server, something string, d time.Duration) error {
	return fmt.Errorf("MCP server %s has not %s within %v", text.Name(server), something, d)
}

// lateError reports that a call has used up its time.
type lateError struct {
	error
	limit time.Duration
}

// rpcError returns an error for the server.
func rpcError(code int64, format string, args ...any) error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// invalid returns the error for a request of a server whose params are wrong.
func invalid(format string, args ...any) error {
	return rpcError(jsonrpc.CodeInvalidParams, format, args...)
}

// isDisconnected reports whether err means that the connection has ended.
func isDisconnected(err error) bool {
	return errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF)
}
