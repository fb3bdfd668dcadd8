package proxy

import (
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// settings are the mode, model and options that were chosen in a session of the child. They are
// applied again when the child is restarted, so that the session stays in the mode that the user
// sees.
type settings struct {
	mu      sync.Mutex
	changes []settingChange
}

// settingChange is a request that changes a setting.
type settingChange struct {
	method, option string
	params         backend.Raw // without sessionId
}

// record remembers a successful request of the client if it changes a setting.
func (s *settings) record(method string, params backend.Raw) {
	switch method {
	case protocol.SessionSetMode, protocol.SessionSetConfigOption, protocol.SessionSetModel:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put(settingChange{method, strictjson.FindText(params, "configId"), params})
	}
}

// update remembers a changed mode that the child reports in an update.
func (s *settings) update(u backend.Update) {
	if u.Kind != sessionstore.CurrentModeUpdate {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if mode := strictjson.FindText(u.Raw, "update", "currentModeId"); mode != "" {
		s.put(settingChange{method: protocol.SessionSetMode,
			params: backend.Encode(map[string]string{"modeId": mode})})
	}
}

// put replaces an earlier change of the same setting.
func (s *settings) put(c settingChange) {
	s.changes = append(slices.DeleteFunc(s.changes, func(before settingChange) bool {
		return before.method == c.method && before.option == c.option
	}), c)
}

// list returns the requests that give a new session the same settings.
func (s *settings) list() []settingChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}
