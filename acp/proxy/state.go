package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// stateVersion is the form of the states that we save.
const stateVersion = 1

// state is what is saved with a session.
type state struct {
	Version int `json:"v"`
	// ID is the child's session id as it sent it, nil if there is none.
	ID backend.Raw `json:"id,omitempty"`
	// Way is how the child was given the roots.
	Way RootsMode `json:"way,omitempty"`
	// Told is the digest of the roots that the child was told of in words.
	Told string `json:"told,omitempty"`
	// Taught is the digest of the instructions of the other roots that it was given, "" if none.
	Taught string `json:"taught,omitempty"`
	// Offered: commands of the roots were announced when it was opened.
	Offered bool `json:"offered,omitempty"`
	// Partial: the child's session began in the middle of ours, so that its own history lacks the beginning.
	Partial bool `json:"partial,omitempty"`
	// Due: it has not been given that beginning as context yet.
	Due bool `json:"due,omitempty"`
}

// readState reads a saved state. One that cannot be read names no session.
func readState(saved []byte) state {
	var s state
	if json.Unmarshal(saved, &s) != nil || s.Version != stateVersion {
		return state{}
	}
	return s
}

func (s state) encode() ([]byte, error) {
	s.Version = stateVersion
	return json.Marshal(s)
}

// key is the child's id, decoded; "" if there is none.
func (s state) key() string { return sessionKey(s.ID) }

func sessionKey(id backend.Raw) string {
	var key string
	if len(id) == 0 || json.Unmarshal(id, &key) != nil {
		return ""
	}
	return key
}

// digest stands for a list of roots that a child was told of, with the name of the tools for them.
func digest(roots workspace.Roots, tools toolServer) string {
	words := make([]string, 0, roots.Len()+1)
	for _, dir := range roots.All() {
		words = append(words, dir.String())
	}
	if tools.name != "" {
		words = append(words, tools.name)
	}
	if tools.readOnly {
		words = append(words, "read-only")
	}
	return digestOf(words...)
}

func digestOf(words ...string) string {
	h := sha256.New()
	for _, word := range words {
		h.Write([]byte(word))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Describe says how a session's agent is given its directories, from the state that the proxy saved with the
// session; "" if the state does not say. It is for a person to read.
func Describe(saved []byte) string {
	switch readState(saved).Way {
	case RootsByProtocol:
		return "by the protocol: the agent takes additionalDirectories"
	case RootsByFlags:
		return "by flags: the agent has a process for the session alone"
	case RootsByContext:
		return "by context: the agent is told of them before a prompt"
	}
	return ""
}
