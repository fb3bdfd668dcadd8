package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// withSettingTold returns work, the rest of a request that a client has sent about the session. If
// the request changes a setting, the other viewers are told.
func (s *session) withSettingTold(
	from *connection, method string, params backend.Raw, work jsonrpc.Work,
) jsonrpc.Work {
	if work == nil ||
		method != protocol.SessionSetMode && method != protocol.SessionSetConfigOption {
		return work
	}
	return func() (json.RawMessage, error) {
		result, err := work()
		set := settingUpdate(sessionstore.CurrentModeUpdate, strictjson.Find(params, "modeId"))
		if method == protocol.SessionSetConfigOption {
			set = settingUpdate(sessionstore.ConfigOptionUpdate,
				strictjson.Find(result, "configOptions"))
		}
		if err == nil {
			s.transcript.tellSetting(from, set)
		}
		return result, err
	}
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

// settingUpdate returns the update of this kind that says what the mode is, or what the options are,
// or the zero Update without a value.
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

// noteMode remembers the session's mode, if u names it.
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

// tellSetting tells every viewer except from what from has set, and keeps it for viewers that join
// later. An agent need not send an update of what a client sets.
func (t *transcript) tellSetting(from *connection, set backend.Update) {
	if set.Raw == nil {
		return
	}
	ctx, cancel := tasks.Commit(t.agent.base)
	defer cancel()
	_ = t.viewers.shown.With(ctx, func(now *shown) error {
		if now.settings == nil {
			now.settings = make(map[sessionstore.Kind]backend.Update)
		}
		now.settings[set.Kind] = set
		now.noteMode(set)
		if t.viewers.Others(from) > 0 {
			t.viewers.show(ctx, from, set)
		}
		return nil
	})
}

// statesLocked returns the stored states of the session, with what clients have set since.
func (t *transcript) statesLocked(
	now *shown, stored []sessionstore.Update,
) (states []backend.Update) {
	for _, u := range stored {
		if _, newer := now.settings[u.Kind]; !newer {
			states = append(states, t.announce(u))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(now.settings)) {
		states = append(states, now.settings[kind])
	}
	return states
}
