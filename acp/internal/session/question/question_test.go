package question

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

const severalWays = `{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Run rm"},"options":[` +
	`{"optionId":"once","kind":"allow_once","name":"Allow"},` +
	`{"optionId":"always","kind":"allow_always","name":"Always"},` +
	`{"optionId":"no","kind":"reject_once","name":"No"},` +
	`{"optionId":"never","kind":"reject_always","name":"Never"}]}`

// A client that does not act allows or refuses once, or not at all.
//
// Clause N8.
func TestNarrow(t *testing.T) {
	q := New(protocol.RequestPermission, json.RawMessage(severalWays))
	answering, watching := q.Narrow(true), q.Narrow(false)
	require.NotContains(t, string(answering.Params), "ways")
	require.Contains(t, string(watching.Params), `"options":[]`)
	chosen := func(id string) string {
		return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}`
	}
	for result, decides := range map[string]bool{
		chosen("once"): true, chosen("no"): true, chosen("always"): false, chosen("never"): false,
		chosen("other"): false, chosen(""): false, `{}`: false, `7`: false, `null`: false,
		`{"outcome":{"outcome":"cancelled","optionId":"once"}}`: false,
	} {
		require.Equal(t, decides, answering.Decides(json.RawMessage(result)), result)
		require.False(t, watching.Decides(json.RawMessage(result)), result)
	}
	require.True(t, q.Decides(json.RawMessage(chosen("always"))))
}

// Whatever a question contains, a client that may only answer gets all of it but the options that
// it must not choose.
func FuzzNarrow(f *testing.F) {
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
		q := New(protocol.RequestPermission, json.RawMessage(params)).Narrow(true)
		require.NoError(t, json.Unmarshal(q.Params, &after), string(q.Params))
		options, _ := after["options"].([]any)
		require.Len(t, options, len(q.Options), string(q.Params))
		for i, o := range options {
			option, _ := o.(map[string]any) // with the exact names, as browsers read it
			require.Regexp(t, "_once$", option["kind"], string(q.Params))
			require.Equal(t, q.Options[i].ID, option["optionId"])
		}
		delete(before, "options")
		delete(after, "options")
		require.Equal(t, before, after)
	})
}
