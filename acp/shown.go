package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// shown has what the viewers of a session were shown last, as far as later updates depend on it.
// All other updates wait while it is used.
type shown struct {
	titled  bool   // the session has a title
	renamed bool   // a client has chosen it
	mode    string // its id, "" if it is not known
	unruled bool   // the user was told that the agent does not ask
	// settings are what a client has set, if the agent has not sent an update of that kind since.
	settings map[sessionstore.Kind]backend.Update
}

// note notes what an update of the agent says.
func (now *shown) note(u backend.Update) {
	delete(now.settings, u.Kind)
	now.noteMode(u)
	if title := latestTitle([]sessionstore.Update{u}); title != nil {
		now.titled = *title != ""
	}
}

// noteSet notes what a client has set. An agent need not send an update of that.
func (now *shown) noteSet(u backend.Update) {
	if now.settings == nil {
		now.settings = make(map[sessionstore.Kind]backend.Update)
	}
	now.settings[u.Kind] = u
	now.noteMode(u)
}

// noteMode notes the session's mode, if u names it.
func (now *shown) noteMode(u backend.Update) {
	if u.Kind != sessionstore.CurrentModeUpdate && u.Kind != sessionstore.ConfigOptionUpdate {
		return
	}
	var said map[string]any // with the names as they are spelled
	_ = json.Unmarshal(strictjson.Find(u.Raw, "update"), &said)
	mode, _ := said["currentModeId"].(string)
	now.mode = cmp.Or(mode, now.mode)
	options, _ := said["configOptions"].([]any)
	for _, one := range options {
		o, _ := one.(map[string]any)
		if mode, ok := o["currentValue"].(string); ok && (o["id"] == "mode" || o["category"] == "mode") {
			now.mode = mode
		}
	}
}

// states returns the states of the session: the stored ones, but those in place of which a client
// has set something since.
func (now *shown) states(stored []sessionstore.Update) (states []backend.Update) {
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

// statesIn returns the session's mode and options in a lifecycle response as updates, for a client
// that does not get the response.
func statesIn(result backend.Raw) []backend.Update {
	return slices.DeleteFunc([]backend.Update{
		settingUpdate(sessionstore.CurrentModeUpdate,
			strictjson.Find(result, "modes", "currentModeId")),
		settingUpdate(sessionstore.ConfigOptionUpdate, strictjson.Find(result, "configOptions")),
	}, func(u backend.Update) bool { return u.Raw == nil })
}

// settingUpdate returns the update of this kind that says what the mode is, or what the options
// are, or the zero Update without a value.
func settingUpdate(kind sessionstore.Kind, value json.RawMessage) backend.Update {
	if len(value) == 0 || string(value) == "null" {
		return backend.Update{}
	}
	member := "configOptions"
	if kind == sessionstore.CurrentModeUpdate {
		member = "currentModeId"
	}
	return backend.NewUpdate(map[string]any{"sessionUpdate": kind, member: value})
}
