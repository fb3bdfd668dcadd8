package proxy

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

const (
	setModeMethod   = "session/set_mode"
	setOptionMethod = "session/set_config_option"
	setModelMethod  = "session/set_model"
)

// settings are what the user has chosen in a child's session: a child that is started anew is told again, so
// that nobody goes on in another mode than they see.
type settings struct {
	mu      sync.Mutex
	chosen  []choice
	mode    string      // the current one, "" if nothing was said of it
	options backend.Raw // configOptions as last told, nil if they were not
}

// choice is a request that made one.
type choice struct {
	method, option string
	params         backend.Raw // without sessionId
}

// set takes note of a request of the client's that succeeded.
func (s *settings) set(method string, params, result backend.Raw) {
	var p struct{ ModeID, ConfigID string }
	switch method {
	case setModeMethod, setOptionMethod, setModelMethod:
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
	s.choose(choice{method, p.ConfigID, params})
	if method == setModeMethod {
		s.mode = p.ModeID
	}
	if r.ConfigOptions != nil {
		s.options = r.ConfigOptions
	}
}

// choose puts a choice in the place of the one before.
func (s *settings) choose(c choice) {
	for i, before := range s.chosen {
		if before.method == c.method && before.option == c.option {
			s.chosen[i] = c
			return
		}
	}
	s.chosen = append(s.chosen, c)
}

// see takes note of an update by which the child says that a setting is another one now.
func (s *settings) see(u backend.Update) {
	if !bytes.Contains(u, []byte("current_mode_update")) && !bytes.Contains(u, []byte("config_option_update")) {
		return
	}
	var p struct {
		Update struct {
			Kind          string `json:"sessionUpdate"`
			CurrentModeID string
			ConfigOptions backend.Raw
		}
	}
	if json.Unmarshal(u, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Update.Kind == "current_mode_update" && p.Update.CurrentModeID != "":
		s.mode = p.Update.CurrentModeID
		if params, err := json.Marshal(map[string]string{"modeId": s.mode}); err == nil {
			s.choose(choice{method: setModeMethod, params: params})
		}
	case p.Update.Kind == "config_option_update" && p.Update.ConfigOptions != nil:
		s.options = p.Update.ConfigOptions
	}
}

// choices are the requests that make a new session like this one.
func (s *settings) choices() []choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]choice{}, s.chosen...)
}

// current is the result of a lifecycle request as it would be now.
func (s *settings) current(result backend.Raw) backend.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options != nil {
		result = replaced(result, "configOptions", s.options)
	}
	if modes, _, err := strictjson.Take(result, "modes"); err == nil && modes != nil && s.mode != "" {
		if mode, err := json.Marshal(s.mode); err == nil {
			result = replaced(result, "modes", replaced(modes, "currentModeId", mode))
		}
	}
	return result
}

// replaced is an object with a member set, or as it was if it is none.
func replaced(object backend.Raw, name string, value backend.Raw) backend.Raw {
	with, err := strictjson.Put(object, name, value)
	if err != nil {
		return object
	}
	return with
}
