package model

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// mode says what the model may do without asking.
type mode string

const (
	ask         mode = "ask"          // asks before each change and command
	acceptEdits mode = "accept_edits" // asks before commands, and before files are deleted or moved
	readOnly    mode = "read_only"    // has no tools that change anything
	planning    mode = "plan"         // like readOnly, and tells the model to plan
)

// settings are what the user can choose in a session. They are kept with it.
type settings struct {
	Mode   mode   `json:"mode"`
	Model  string `json:"model"`  // its ID
	Effort string `json:"effort"` // see llm.Request
}

// restoreSettings returns the settings in a saved state, and the defaults for what is not there or no longer possible.
func (b *modelBackend) restoreSettings(state []byte) settings {
	s := settings{Mode: ask, Model: b.clients[0].Model().ID}
	_ = json.Unmarshal(state, &s)
	return s
}

// current returns the settings and the client of the model.
func (s *session) current() (settings, *llm.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings, s.backend.clients[0]
}

// describeSettings returns the members modes and configOptions of a lifecycle response.
func (s *session) describeSettings() backend.Raw { return backend.Raw(`{}`) }

func (s *session) setMode(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	return backend.Raw(`{}`), nil
}

func (s *session) setConfigOption(ctx context.Context, params backend.Raw) (backend.Raw, error) {
	return backend.Raw(`{}`), nil
}
