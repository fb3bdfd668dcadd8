// Package protocol has the names and error codes of the Agent Client Protocol, and reads and writes
// the session id of a message and what this program says in its _meta. The messages themselves are
// types of the official SDK or, where they are passed on, raw JSON.
package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Methods that an agent serves.
const (
	Initialize   = "initialize"
	Authenticate = "authenticate"
	Logout       = "logout"
	AuthStatus   = "auth/status" // in a draft

	SessionNew             = "session/new"
	SessionLoad            = "session/load"
	SessionResume          = "session/resume"
	SessionList            = "session/list"
	SessionClose           = "session/close"
	SessionDelete          = "session/delete"
	SessionPrompt          = "session/prompt"
	SessionCancel          = "session/cancel"
	SessionSetMode         = "session/set_mode"
	SessionSetConfigOption = "session/set_config_option"
)

// Methods that an agent serves according to drafts of the protocol.
const (
	SessionFork      = "session/fork"
	SessionSetTitle  = "session/set_title"
	SessionArchive   = "session/archive"
	SessionUnarchive = "session/unarchive"
	SessionStatus    = "session/status"
	SessionSetModel  = "session/set_model"
	SessionOptions   = "session/options"
)

// CancelRequest is a method of both sides.
const CancelRequest = "$/cancel_request"

// Methods that a client serves.
const (
	SessionUpdate       = "session/update"
	RequestPermission   = "session/request_permission"
	ReadTextFile        = "fs/read_text_file"
	WriteTextFile       = "fs/write_text_file"
	TerminalCreate      = "terminal/create"
	ElicitationCreate   = "elicitation/create"
	ElicitationComplete = "elicitation/complete"
)

// Beginnings of groups of methods.
const (
	FilePrefix        = "fs/"
	TerminalPrefix    = "terminal/"
	ElicitationPrefix = "elicitation/"
	AuthPrefix        = "auth/"
	ProvidersPrefix   = "providers/"
	SessionPrefix     = "session/"
)

// Members of messages.
const (
	SessionID             = "sessionId"
	AdditionalDirectories = "additionalDirectories"
	MCPServers            = "mcpServers"
	SystemPrompt          = "systemPrompt"
	// Archived is a member of the params of session/list and of SessionInfo, according to a draft.
	Archived = "archived"
	// Ours is the member of _meta with what this program says beyond the protocol.
	Ours = "acp-agent"
)

// Error codes of ACP besides those of JSON-RPC, which package jsonrpc has.
const (
	CodeAuthRequired = -32000
	CodeNotFound     = -32002
)

// TakeSessionID returns the session id in params, and a function that returns the rest. The id is
// "" if params is not an object, or has no id that is a string; the rest is all of params then. The
// function may be called once; it uses the memory of params, which must not be used afterwards. The
// error is that of [strictjson.Take], but params that begin with the id must be valid.
func TakeSessionID(params json.RawMessage) (id string, rest func() json.RawMessage, err error) {
	if id, others := leadingSessionID(params); id != "" {
		return id, func() json.RawMessage {
			others[0] = '{' // instead of a comma
			return others
		}, nil
	}
	all := func() json.RawMessage { return params }
	if object := bytes.TrimLeft(params, " \t\r\n"); len(object) == 0 || object[0] != '{' {
		return "", all, nil
	}
	value, others, err := strictjson.Take(params, SessionID)
	if err != nil {
		return "", nil, err
	}
	if value == nil || json.Unmarshal(value, &id) != nil || id == "" {
		return "", all, nil
	}
	return id, func() json.RawMessage { return others }, nil
}

// leadingSessionID returns the id, and the rest of params from the comma after it, if params begin
// with the id, as nearly all do, and cannot contain a second one. It does not parse params as JSON.
func leadingSessionID(params json.RawMessage) (id string, others json.RawMessage) {
	behind, leads := bytes.CutPrefix(params, []byte(`{"`+SessionID+`":"`))
	end := bytes.IndexByte(behind, '"')
	if !leads || end < 0 || !bytes.HasPrefix(behind[end+1:], []byte(",")) ||
		bytes.IndexByte(behind[:end], '\\') >= 0 || MayNameSession(behind[end+1:]) {
		return "", nil
	}
	return string(behind[:end]), behind[end+1:]
}

// MayNameSession reports whether params may have a member sessionId, perhaps spelled with escapes.
func MayNameSession(params json.RawMessage) bool {
	return bytes.Contains(params, []byte(SessionID)) || bytes.Contains(params, []byte(`\u`))
}

// OurMeta returns the _meta whose member acp-agent is said.
func OurMeta(said any) map[string]any { return map[string]any{Ours: said} }

// FindOurs returns the member acp-agent of the _meta of an object, or nil.
func FindOurs(object json.RawMessage) json.RawMessage {
	return strictjson.Find(object, "_meta", Ours)
}

// SetOurs returns an object with a member of its _meta.acp-agent.
func SetOurs(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return strictjson.SetAt(object, value, "_meta", Ours, name)
}
