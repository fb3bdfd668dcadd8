package transcript

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Shown has what the viewers of a session were shown last, as far as later updates depend on it.
// All other updates wait while it is used.
type Shown struct {
	Titled  bool   // the session has a title
	Renamed bool   // a client has chosen it
	Mode    string // its id, "" if it is not known
	// settings are what a client has set, if the agent has not sent an update of that kind since.
	settings map[sessionstore.Kind]backend.Update
}

// note notes what an update of the agent says.
func (now *Shown) note(u backend.Update) {
	delete(now.settings, u.Kind)
	now.NoteMode(u)
	if title := record.LatestTitle([]sessionstore.Update{u}); title != nil {
		now.Titled = *title != ""
	}
}

// noteSet notes what a client has set. An agent need not send an update of that.
func (now *Shown) noteSet(u backend.Update) {
	if now.settings == nil {
		now.settings = make(map[sessionstore.Kind]backend.Update)
	}
	now.settings[u.Kind] = u
	now.NoteMode(u)
}

// NoteMode notes the session's mode, if u names it.
func (now *Shown) NoteMode(u backend.Update) {
	if u.Kind != sessionstore.CurrentModeUpdate && u.Kind != sessionstore.ConfigOptionUpdate {
		return
	}
	var said map[string]any // with the names as they are spelled
	_ = json.Unmarshal(u.Body(), &said)
	mode, _ := said["currentModeId"].(string)
	now.Mode = cmp.Or(mode, now.Mode)
	options, _ := said["configOptions"].([]any)
	for _, one := range options {
		o, _ := one.(map[string]any)
		if mode, ok := o["currentValue"].(string); ok && (o["id"] == "mode" || o["category"] == "mode") {
			now.Mode = mode
		}
	}
}

// States returns the states of the session: the stored ones, but those in place of which a client
// has set something since.
func (now *Shown) States(stored []sessionstore.Update) (states []backend.Update) {
	for _, u := range stored {
		if _, newer := now.settings[u.Kind]; !newer {
			states = append(states, u)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(now.settings)) {
		states = append(states, now.settings[kind])
	}
	return states
}

// StatesIn returns the session's mode and options in a lifecycle response as updates, for a client
// that does not get the response.
func StatesIn(result backend.Raw) []backend.Update {
	return slices.DeleteFunc([]backend.Update{
		Setting(sessionstore.CurrentModeUpdate,
			strictjson.Find(result, "modes", "currentModeId")),
		Setting(sessionstore.ConfigOptionUpdate, strictjson.Find(result, "configOptions")),
	}, func(u backend.Update) bool { return u.Raw == nil })
}

// Setting returns the update of this kind that says what the mode is, or what the options
// are, or the zero Update without a value.
func Setting(kind sessionstore.Kind, value json.RawMessage) backend.Update {
	if len(value) == 0 || string(value) == "null" {
		return backend.Update{}
	}
	member := "configOptions"
	if kind == sessionstore.CurrentModeUpdate {
		member = "currentModeId"
	}
	return backend.NewUpdate(map[string]any{"sessionUpdate": kind, member: value})
}
