package acp

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const severalWays = `{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Run rm"},"options":[` +
	`{"optionId":"once","kind":"allow_once","name":"Allow"},` +
	`{"optionId":"always","kind":"allow_always","name":"Always"},` +
	`{"optionId":"no","kind":"reject_once","name":"No"},` +
	`{"optionId":"never","kind":"reject_always","name":"Never"}]}`

// A client that does not act allows or refuses once, or not at all.
//
// Clause N8.
func TestAnswersOfRoles(t *testing.T) {
	q := newQuestion(protocol.RequestPermission, json.RawMessage(severalWays))
	require.JSONEq(t, severalWays, string(q.as(RoleFull).params))
	require.NotContains(t, string(q.as(RoleAnswer).params), "ways")
	require.Contains(t, string(q.as(RoleWatch).params), `"options":[]`)
	chosen := func(id string) string {
		return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}`
	}
	for result, decides := range map[string]bool{
		chosen("once"): true, chosen("no"): true, chosen("always"): false, chosen("never"): false,
		chosen("other"): false, chosen(""): false, `{}`: false, `7`: false, `null`: false,
		`{"outcome":{"outcome":"cancelled","optionId":"once"}}`: false,
	} {
		require.Equal(t, decides, q.as(RoleAnswer).decides(json.RawMessage(result)), result)
		require.False(t, q.as(RoleWatch).decides(json.RawMessage(result)), result)
	}
	require.True(t, q.as(RoleFull).decides(json.RawMessage(chosen("always"))))
}

// Whatever a question contains, a client that may only answer gets all of it but the options that
// it must not choose.
func FuzzQuestionsOfRoles(f *testing.F) {
	for _, params := range []string{
		severalWays,
		`{"sessionId":"s","toolCall":{"title":"\u202e<b>","rawInput":{"command":"a\u200b",` +
			`"options":[{"kind":"allow_always"}]}},"options":[{"optionId":"a","kind":"allow_once"},` +
			`{"optionId":"b","kind":"allow_always"}]}`,
		`{"options":{"kind":"allow_always"}}`, `{"options":[[{"kind":"allow_always"}],null,7]}`,
		`{"options":[{"kind":"allow_always"}],"options":[{"kind":"allow_once"}]}`,
		`{"OPTIONS":[{"kind":"allow_always"}]}`,
		`{"options":[{"optionId":"a","optionId":"b","kind":"reject_always","kind":"allow_once"}]}`,
		`{"options":[{"optionId":"c","kind":"allow_always","KIND":"allow_once"}]}`,
		`{"options":[{"kind":"allow_once"},{"optionId":7,"kind":"allow_once"},` +
			`{"optionId":"c","KIND":"allow_once","kind":"allow_always"}]}`,
		`{}`, `[]`, `null`,
	} {
		f.Add(params)
	}
	f.Fuzz(func(t *testing.T, params string) {
		var before, after map[string]any
		if json.Unmarshal([]byte(params), &before) != nil || before == nil {
			return // it is not an object, which is sent to nobody
		}
		q := newQuestion(protocol.RequestPermission, json.RawMessage(params)).as(RoleAnswer)
		require.NoError(t, json.Unmarshal(q.params, &after), string(q.params))
		options, _ := after["options"].([]any)
		require.Len(t, options, len(q.Options), string(q.params))
		for i, o := range options {
			option, _ := o.(map[string]any) // with the exact names, as browsers read it
			require.Regexp(t, "_once$", option["kind"], string(q.params))
			require.Equal(t, q.Options[i].ID, option["optionId"])
		}
		delete(before, "options")
		delete(after, "options")
		require.Equal(t, before, after)
	})
}

// What a client that does not act says of itself and of sessions is left out, however it is
// spelled.
func TestRequestsOfRoles(t *testing.T) {
	for _, name := range []string{"clientCapabilities", "CLIENTCAPABILITIES", "clientcapabilities"} {
		r := &jsonrpc.Request{Method: protocol.Initialize, Params: fmt.Appendf(nil,
			`{"protocolVersion":1,"%s":{"fs":{"readTextFile":true},"terminal":true},"_meta":{}}`, name)}
		RoleFull.narrow(r)
		require.Contains(t, string(r.Params), "terminal")
		RoleAnswer.narrow(r)
		require.JSONEq(t, `{"protocolVersion":1,"clientCapabilities":`+onlyQuestions+`}`, string(r.Params))
	}
	for _, method := range []string{protocol.SessionLoad, protocol.SessionResume} {
		r := &jsonrpc.Request{Method: method, Params: json.RawMessage(`{"sessionId":"s","cwd":"/a",` +
			`"additionalDirectories":["/b"],"ADDITIONALDIRECTORIES":["/c"],"mcpServers":[{"name":"x"}],` +
			`"systemPrompt":{},"_meta":{"a":1}}`)}
		RoleWatch.narrow(r)
		require.JSONEq(t, `{"sessionId":"s","cwd":"/a","mcpServers":[]}`, string(r.Params))
		for _, params := range []string{`[]`, `7`, `{`, ``} {
			r.Params = json.RawMessage(params)
			RoleWatch.narrow(r)
			require.True(t, strictjson.IsObject(r.Params), params)
		}
	}
}
