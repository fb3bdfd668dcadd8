package acp

import (
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
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
