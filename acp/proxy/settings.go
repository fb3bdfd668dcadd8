package proxy

import (
	"encoding/json"
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
	mode    string      // the current one, "" if unknown
	options backend.Raw // configOptions as last sent by the child, nil if never
}

// settingChange is a request that changes a setting.
type settingChange struct {
	method, option string
	params         backend.Raw // without sessionId
}

// record remembers a successful request of the client if it changes a setting.
func (s *settings) record(method string, params, result backend.Raw) {
	var p struct{ ModeID, ConfigID string }
	switch method {
	case protocol.SessionSetMode, protocol.SessionSetConfigOption, protocol.SessionSetModel:
		if json.Unmarshal(params, &p) != nil {
			return
		}
	default:
		return
	}
	var r struct{ ConfigOptions backend.Raw }
	_ = json.Unmarshal(result, &r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(settingChange{method, p.ConfigID, params})
	if method == protocol.SessionSetMode {
		s.mode = p.ModeID
	}
	if r.ConfigOptions != nil {
		s.options = r.ConfigOptions
	}
}

// put replaces an earlier change of the same setting.
func (s *settings) put(c settingChange) {
	at := slices.IndexFunc(s.changes, func(before settingChange) bool {
		return before.method == c.method && before.option == c.option
	})
	if at < 0 {
		s.changes = append(s.changes, c)
	} else {
		s.changes[at] = c
	}
}

// update remembers a changed setting that the child reports in an update.
func (s *settings) update(u backend.Update) {
	if u.Kind != sessionstore.CurrentModeUpdate && u.Kind != sessionstore.ConfigOptionUpdate {
		return
	}
	var p struct {
		Update struct {
			CurrentModeID string
			ConfigOptions backend.Raw
		}
	}
	if json.Unmarshal(u.Raw, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.Kind == sessionstore.CurrentModeUpdate && p.Update.CurrentModeID != "":
		s.mode = p.Update.CurrentModeID
		s.put(settingChange{method: protocol.SessionSetMode,
			params: backend.Encode(map[string]string{"modeId": s.mode})})
	case u.Kind == sessionstore.ConfigOptionUpdate && p.Update.ConfigOptions != nil:
		s.options = p.Update.ConfigOptions
	}
}

// list returns the requests that give a new session the same settings.
func (s *settings) list() []settingChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

// current returns the result of a lifecycle request with the current mode and options.
func (s *settings) current(result backend.Raw) backend.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options != nil {
		result = strictjson.Set(result, "configOptions", s.options)
	}
	if modes := strictjson.Find(result, "modes"); modes != nil && s.mode != "" {
		result = strictjson.Set(result, "modes", strictjson.Set(modes, "currentModeId", backend.Encode(s.mode)))
	}
	return result
}
