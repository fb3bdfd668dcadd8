package acp

import (
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// reasonData is error.data of an error that is caused by the state of a session or the program
// rather than by the request.
type reasonData struct {
	Reason    string `json:"reason"`
	SessionID string `json:"sessionId,omitempty"`
	Path      string `json:"path,omitempty"`
	Hint      string `json:"hint,omitempty"`

	Roots *workspace.Roots `json:"roots,omitempty"`
}

// stateError returns an error with a reason that programs can read.
func stateError(code int, message string, data reasonData) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message, Data: backend.Encode(data)}
}

func errNotActive(id sessionstore.ID) error {
	return stateError(protocol.CodeNotFound,
		"session "+string(id)+" is stored but not active: load or resume it first",
		reasonData{Reason: "not_active", SessionID: string(id)})
}

// errOpenElsewhere is the error for what the client may not do to a session while it is open in
// other windows. roots are the session's, if they are the reason.
func errOpenElsewhere(id sessionstore.ID, roots *workspace.Roots) error {
	message := "this session is open in another window: close it there first"
	if roots != nil {
		message = "this session is open in another window, where a turn is running: load it " +
			"without additionalDirectories, or with those that it has, or wait for the end of the " +
			"turn"
	}
	return stateError(jsonrpc.CodeInvalidRequest, message,
		reasonData{Reason: "open_elsewhere", SessionID: string(id), Roots: roots})
}

func errUnknownSession(id sessionstore.ID) error {
	given := text.Truncate(string(id), 1<<10)
	return stateError(protocol.CodeNotFound, "no session "+given+": it may have been deleted",
		reasonData{Reason: "not_found", SessionID: given})
}

func errNotInitialized(method string) error {
	return stateError(jsonrpc.CodeInvalidRequest,
		method+" before initialize: send initialize first",
		reasonData{Reason: "not_initialized"})
}

// storeUnavailable is the reason of errors of a session store that cannot be used.
const storeUnavailable = "store_unavailable"

// protocolError converts an error of another package to the protocol error that the client
// receives. Other errors are unchanged.
func protocolError(err error) error {
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*turns.TooManyError](err); ok {
		return stateError(jsonrpc.CodeInvalidRequest,
			"a turn is running in this session and another prompt waits for it: wait for an "+
				"answer, or send session/cancel first",
			reasonData{Reason: "turn_in_progress", SessionID: string(e.ID)})
	}
	if e, ok := errors.AsType[*sessionstore.NotFoundError](err); ok {
		return errUnknownSession(e.ID)
	}
	if e, ok := errors.AsType[*sessionstore.FencedError](err); ok {
		return stateError(jsonrpc.CodeInvalidRequest, e.Error(),
			reasonData{Reason: "fenced", SessionID: string(e.ID)})
	}
	if e, ok := errors.AsType[*sessionstore.QuotaError](err); ok {
		return stateError(jsonrpc.CodeInvalidRequest, e.Error(),
			reasonData{Reason: "quota_exceeded"})
	}
	if e, ok := errors.AsType[*sessionstore.CursorError](err); ok {
		return strictjson.Refuse(
			strictjson.NewViolation("cursor", string(e.Cursor), strictjson.InvalidCursor))
	}
	if e, ok := errors.AsType[*sessionstore.UnavailableError](err); ok {
		return stateError(jsonrpc.CodeInternal, e.Error(),
			reasonData{Reason: storeUnavailable, Path: e.Medium, Hint: e.Hint})
	}
	return err
}

// withoutStorePath returns an error for the client. If that is not trusted with this machine, it is
// not told where the sessions are stored.
func (c *connection) withoutStorePath(err error) error {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if c.peer.Remote && (errors.As(err, new(*sessionstore.UnavailableError)) ||
		ok && strictjson.FindText(answer.Data, "reason") == storeUnavailable) {
		return stateError(jsonrpc.CodeInternal,
			"the session store of the server cannot be used: try again later, or tell its operator",
			reasonData{Reason: storeUnavailable})
	}
	return err
}
