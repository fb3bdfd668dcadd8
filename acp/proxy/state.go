package proxy

import (
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// stateVersion is the version of the saved form.
const stateVersion = 1

// state is the proxy's part of a stored session.
type state struct {
	Version int `json:"v"`
	// ID is the child's session id as it sent it, or nil.
	ID backend.Raw `json:"id,omitempty"`
	// RootsMode is how the child was given the roots.
	RootsMode profiles.RootsMode `json:"rootsMode,omitempty"`
	// Sent says which texts about the roots the child was sent.
	briefing.Sent
	// SentTools says that the child's session was given our MCP server with tools for the roots.
	SentTools bool `json:"sentTools,omitempty"`
	// RefusesTools says that the child has refused a session with that server.
	RefusesTools bool `json:"refusesTools,omitempty"`
	// Granted are digests of the additional directories that the child's session was given, if it
	// keeps them.
	Granted []string `json:"granted,omitempty"`
	// Offered says that commands of the roots were announced when it was opened.
	Offered bool `json:"offered,omitempty"`
	// HistoryDue says that the child's session began in the middle of ours, and that the child has
	// not been told the beginning yet.
	HistoryDue bool `json:"historyDue,omitempty"`
	// From is the agent that has led it, "" for the child itself.
	From string `json:"from,omitempty"`
	// Earlier is the child's session that this one replaces until the child opens it again, or nil.
	Earlier *state `json:"earlier,omitempty"`
}

// StateFrom returns the state of a session that the agent called from has led, and that was not
// opened yet.
func StateFrom(from string) []byte { return state{From: from}.encode() }

// Describe returns a sentence for a person on how the agent of a session learns of its directories.
// state was saved by the proxy with the session. Describe returns "" if state does not say.
func Describe(state []byte) string {
	switch decodeState(state).RootsMode {
	case profiles.RootsByProtocol:
		return "by the protocol: the agent takes additionalDirectories"
	case profiles.RootsByFlags:
		return "by flags: the agent has a process for these folders"
	case profiles.RootsByContext:
		return "by context: the prompt describes them"
	}
	return ""
}

// decodeState returns a saved state, or the zero state if it cannot be read.
func decodeState(saved []byte) state {
	var s state
	if json.Unmarshal(saved, &s) != nil || s.Version != stateVersion {
		return state{}
	}
	return s
}

func (s state) encode() []byte {
	s.Version = stateVersion
	return backend.Encode(s)
}

// keepsOther reports whether the child's session can write in directories other than those that it
// is given now.
func (s state) keepsOther(given workspace.Dirs) bool {
	now := dirDigests(given)
	return slices.ContainsFunc(s.Granted, func(dir string) bool {
		return !slices.Contains(now, dir)
	})
}

func dirDigests(dirs workspace.Dirs) []string {
	var digests []string
	for _, dir := range dirs.All() {
		digests = append(digests, briefing.Digest(dir.String()))
	}
	return digests
}

// key returns the child's session id as a string, or "".
func (s state) key() string { return decodeID(s.ID) }

// withSessionID returns params with a session id, which is raw JSON.
func withSessionID(params, id backend.Raw) backend.Raw {
	return strictjson.Set(params, protocol.SessionID, id)
}

// decodeID returns a session id as a string, "" if it is missing or not a string.
func decodeID(id backend.Raw) string {
	var s string
	_ = json.Unmarshal(id, &s) // which leaves s alone if it fails
	return s
}
