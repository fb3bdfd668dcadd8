package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Causes with which a request's context ends.
var (
	// ErrRequestCancelled means that the peer sent $/cancel_request for the request.
	ErrRequestCancelled = errors.New("request cancelled by the peer")
	// ErrClosed means that the connection ended. It is also returned by calls and notifications.
	ErrClosed = errors.New("connection closed")
)

// ErrQueueFull is returned by the calls that do not wait when the output queue is over its limit.
var ErrQueueFull = errors.New("the peer is not reading: output queue full")

// JSON-RPC and ACP error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeCancelled      = -32800
)

// Error is a JSON-RPC error object. An *Error in the tree of an error that Work returns is sent as
// the response; a *strictjson.Error is sent as -32602 with its violations as data, and any other
// error as -32603 with its text. A request that the peer cancelled is answered with -32800 whatever
// the error.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// maxMessage bounds the message of our own errors, in bytes, because they may quote what the peer
// sent. Errors of other peers are passed on as they are.
const maxMessage = 4 << 10

// Errorf returns an *Error without data. A long message is shortened in the middle.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: text.Shorten(fmt.Sprintf(format, args...), maxMessage)}
}

// MethodNotFound returns the error for an unknown method.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "method not found: %s", method)
}

var (
	// errPanic answers a request whose handler panicked. The details are logged.
	errPanic = &Error{Code: CodeInternal, Message: "internal error"}
	// errConnClosed answers a request that was read while the connection was ending.
	errConnClosed = &Error{Code: CodeCancelled, Message: "the connection closed"}
	// errUnread is sent in place of a response when too many are waiting to be sent.
	errUnread = &Error{Code: CodeInternal, Message: "the response was dropped because too many " +
		"others are unread: read those and send the request again"}
	// errMalformedResponse is returned by a call whose response was not a valid message.
	errMalformedResponse = errors.New("the peer's response is malformed")
)

// asError converts err to the error of a response, as documented at Error.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if found := strictjson.ViolationsOf(err); found != nil {
		data, encodeErr := json.Marshal(struct {
			Violations []strictjson.Violation `json:"violations"`
		}{found})
		if encodeErr != nil {
			data = nil
		}
		return &Error{Code: CodeInvalidParams, Message: err.Error(), Data: data}
	}
	return Errorf(CodeInternal, "%v", err)
}

// LogPanic logs a recovered panic with its stack and further attributes. Panic values may quote
// messages, so except for runtime errors only their type is logged.
func LogPanic(log *slog.Logger, value any, attributes ...any) {
	what := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		what = err.Error()
	}
	log.Error("panic", append(attributes, "panic", what, "stack", string(debug.Stack()))...)
}

// shownName bounds a method name for the log: the peer chose it.
func shownName(method string) string { return text.Truncate(method, 64) }
