package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func TestDecode(t *testing.T) {
	type value struct {
		Text string `json:"text"`
	}
	for raw, want := range map[string]string{
		`{"text":"a","TEXT":"b","Text":"c"}`: "a",
		`{"text":"a","text":"b"}`:            "b",
		"{\"text\":\"a\xff\"}":               "a\ufffd",
		`{"text":"\ud800","other":[]}`:       "\ufffd",
		`{"text":null}`:                      "",
	} {
		var v value
		require.NoError(t, strictjson.Decode([]byte(raw), &v), raw)
		require.Equal(t, want, v.Text, raw)
	}
	for _, raw := range []string{``, `{"text":1}`, `{"text":"a"`, `{"text":"a"} x`} {
		require.Error(t, strictjson.Decode([]byte(raw), new(value)), raw)
	}
}
