package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Wherever and however often the id stands, the last one counts and none is left.
func TestTakeSessionID(t *testing.T) {
	for params, want := range map[string][2]string{
		`{"sessionId":"a","update":{"n":1}}`:           {"a", `{"update":{"n":1}}`},
		`{"sessionId":"a"}`:                            {"a", `{}`},
		`{"sessionId":"a" ,"n":1}`:                     {"a", `{"n":1}`},
		`{"sessionId":"a","n":{"sessionId":"inner"}}`:  {"a", `{"n":{"sessionId":"inner"}}`},
		`{"sessionId":"a","n":1,"sessionId":"b"}`:      {"b", `{"n":1}`},
		`{"sessionId":"a","n":1,"\u0073essionId":"b"}`: {"b", `{"n":1}`},
		`{"sessionId":"\u0061\"","n":1}`:               {`a"`, `{"n":1}`},
		`{"n":1,"sessionId":"a"}`:                      {"a", `{"n":1}`},
		`{"sessionId":"","n":1}`:                       {"", `{"sessionId":"","n":1}`},
		`{"sessionId":7,"n":1}`:                        {"", `{"sessionId":7,"n":1}`},
		`[]`:                                           {"", `[]`},
	} {
		id, rest, err := protocol.TakeSessionID(json.RawMessage(params))
		require.NoError(t, err, params)
		require.Equal(t, want, [2]string{id, string(rest())}, params)
	}
}
