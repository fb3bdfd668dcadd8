package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// lifecycle is what a response that opens a session says of its settings. Updates have the same
// members.
type lifecycle struct {
	Modes struct {
		CurrentModeID  string
		AvailableModes []struct{ ID, Name, Description string }
	}
	ConfigOptions []configOption
}

type configOption struct {
	ID, Name, Category, Type, CurrentValue string
	Options                                []struct{ Value, Name, Description string }
}

func decodeLifecycle(t *testing.T, raw json.RawMessage) lifecycle {
	t.Helper()
	var l lifecycle
	require.NoError(t, json.Unmarshal(raw, &l))
	return l
}

// chosen returns the values of all options and the mode: "mode=ask model=local
// thought_level=default, ask".
func (l lifecycle) chosen() string {
	var values []string
	for _, o := range l.ConfigOptions {
		values = append(values, o.ID+"="+o.CurrentValue)
	}
	return strings.Join(values, " ") + ", " + l.Modes.CurrentModeID
}

// settingsUpdates returns the updates about settings since the last take, as "KIND VALUES".
func (e *editor) settingsUpdates() []string {
	var found []string
	updates, _ := e.take()
	for _, u := range updates {
		var l lifecycle
		switch sessionstore.Kind(u.Kind) {
		case sessionstore.CurrentModeUpdate:
			found = append(found, u.Kind+" "+u.Mode)
		case sessionstore.ConfigOptionUpdate:
			require.NoError(e.t, json.Unmarshal(u.Raw, &l))
			found = append(found, u.Kind+" "+strings.TrimSuffix(l.chosen(), ", "))
		}
	}
	return found
}

func TestSettings(t *testing.T) {
	other := Model{ID: "other", API: OpenAI, BaseURL: "http://127.0.0.1:9/v1", Name: "qwen3"}
	opened := func(t *testing.T) *editor { return open(t, setup{more: []Model{other}}) }

	t.Run("the response that opens a session has modes and options", func(t *testing.T) {
		l := decodeLifecycle(t, opened(t).opened)
		require.Equal(t, "mode=ask model=local thought_level=default, ask", l.chosen())
		var ids []string
		for i, m := range l.Modes.AvailableModes {
			ids = append(ids, m.ID)
			require.NotEmpty(t, m.Name)
			require.NotEmpty(t, m.Description)
			require.Equal(t, m.ID, l.ConfigOptions[0].Options[i].Value)
		}
		require.Equal(t, []string{"ask", "accept_edits", "read_only", "plan"}, ids)
		for i, category := range []string{"mode", "model", "thought_level"} {
			require.Equal(t, category, l.ConfigOptions[i].Category)
			require.Equal(t, "select", l.ConfigOptions[i].Type)
		}
		require.Equal(t, "qwen3", l.ConfigOptions[1].Options[1].Description)
	})

	t.Run("a change is answered, and what the answer does not say is an update",
		func(t *testing.T) {
			e := opened(t)
			require.JSONEq(t, `{}`, string(e.call("session/set_mode",
				map[string]any{"modeId": "plan"})))
			require.Equal(t,
				[]string{"config_option_update mode=plan model=local thought_level=default"},
				e.settingsUpdates())
			answer := e.call("session/set_config_option", map[string]any{"configId": "mode",
				"value": "read_only"})
			require.Equal(t, "mode=read_only model=local thought_level=default, ",
				decodeLifecycle(t, answer).chosen())
			require.Equal(t, []string{"current_mode_update read_only"}, e.settingsUpdates())
			answer = e.call("session/set_config_option", map[string]any{"configId": "model",
				"value": "other", "type": "select"})
			require.Equal(t, "mode=read_only model=other thought_level=default, ",
				decodeLifecycle(t, answer).chosen())
			require.Empty(t, e.settingsUpdates())
		})

	t.Run("a value that is not offered changes nothing", func(t *testing.T) {
		e := opened(t)
		for _, c := range []struct{ method, members, message string }{
			{"session/set_mode", `"modeId":"yolo"`,
				`modeId "yolo" is not supported: use ask, accept_edits, read_only, plan`},
			{"session/set_mode", `"modeId":7`, "modeId"},
			{"session/set_mode", `"mode":"ask"`, "modeId is missing"},
			{"session/set_config_option", `"configId":"model","value":"gpt"`,
				`value "gpt" is not supported: use local, other`},
			{"session/set_config_option", `"configId":"thought_level","value":"low","value":"high"`,
				"twice"},
			{"session/set_config_option", `"configId":"mode","type":"boolean","value":true`,
				"a string"},
			{"session/set_config_option", `"configId":"temperature","value":"1"`,
				`configId "temperature" is not supported: use mode, model, thought_level`},
		} {
			_, err := e.client.Call(t.Context(), c.method,
				json.RawMessage(`{"sessionId":"`+e.id+`",`+c.members+`}`))()
			var failed *client.Error
			require.ErrorAs(t, err, &failed, c.members)
			require.Equal(t, -32602, failed.Code)
			require.Contains(t, failed.Message, c.message)
		}
		require.Empty(t, e.settingsUpdates())
		e.restart()
		require.Equal(t, "mode=ask model=local thought_level=default, ask",
			decodeLifecycle(t, e.opened).chosen())
	})

	t.Run("settings are kept with the session", func(t *testing.T) {
		e := opened(t)
		e.call("session/set_mode", map[string]any{"modeId": "read_only"})
		e.call("session/set_config_option", map[string]any{"configId": "model", "value": "other"})
		e.call("session/set_config_option", map[string]any{"configId": "thought_level",
			"value": "high"})
		e.restart()
		const chosen = "mode=read_only model=other thought_level=high, read_only"
		require.Equal(t, chosen, decodeLifecycle(t, e.opened).chosen())
		fork, err := e.client.ForkSession(t.Context(), e.id, e.lifecycle())
		require.NoError(t, err)
		require.Equal(t, chosen, decodeLifecycle(t, fork.Result).chosen())
		e.setup.more = nil
		e.restart()
		require.Equal(t, "mode=read_only model=local thought_level=high, read_only",
			decodeLifecycle(t, e.opened).chosen(), "a model that is gone")
	})

	t.Run("a session that never left the first model follows it", func(t *testing.T) {
		e := opened(t)
		e.call("session/set_mode", map[string]any{"modeId": "plan"})
		e.setup.model = func(m *Model) { m.ID = "renamed" }
		e.restart()
		require.Equal(t, "mode=plan model=renamed thought_level=default, plan",
			decodeLifecycle(t, e.opened).chosen())
	})

	t.Run("the next request to the model uses what was chosen", func(t *testing.T) {
		e := opened(t)
		asked := func() (effort string) {
			var body struct {
				ReasoningEffort string `json:"reasoning_effort"`
			}
			requests := e.model.Requests()
			require.NotEmpty(t, requests)
			require.NoError(t, json.Unmarshal(requests[len(requests)-1].Body, &body))
			return body.ReasoningEffort
		}
		e.prompt("Hello")
		require.Empty(t, asked())
		e.call("session/set_config_option", map[string]any{"configId": "thought_level",
			"value": "low"})
		e.prompt("Hello")
		require.Equal(t, "low", asked())
	})
}
