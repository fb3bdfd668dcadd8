package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func ExampleViolation() {
	err := strictjson.Refuse(
		strictjson.NewViolation("additionalDirectories", "src", strictjson.Relative).At(1),
		strictjson.NewViolation("mcpServers", nil, strictjson.Required),
	)
	fmt.Println(err)
	for _, v := range strictjson.ViolationsOf(err) {
		fmt.Println(v.Reason)
	}
	// Output:
	// additionalDirectories[1] "src" is not absolute: give an absolute path (and 1 more)
	// relative
	// required
}

// Clause A5.
func TestViolationAsJSON(t *testing.T) {
	raw, err := json.Marshal(strictjson.NewViolation("additionalDirectories",
		json.RawMessage(`{"a":1}`), strictjson.Type).At(0))
	require.NoError(t, err)
	require.JSONEq(t, `{"field":"additionalDirectories","index":0,"value":{"a":1},"reason":"type"}`,
		string(raw))
}

// Clause A5.
func TestEveryReasonHasAText(t *testing.T) {
	for _, reason := range []strictjson.Reason{
		strictjson.Null, strictjson.Type, strictjson.Required, strictjson.Empty,
		strictjson.Relative, strictjson.NUL,
		strictjson.Encoding, strictjson.DuplicateKey, strictjson.WrongCase, strictjson.CwdMismatch,
		strictjson.TooMany,
		strictjson.Denied, strictjson.Missing, strictjson.NotDirectory, strictjson.Unreadable,
		strictjson.Unsupported,
		strictjson.InvalidCursor, strictjson.OtherAgent,
	} {
		text := strictjson.NewViolation("cwd", "/x", reason).String()
		require.NotContains(t, text, string(reason)+"\x00")
		require.Greater(t, len(text), len("cwd \"/x\" "), reason)
	}
}

func TestViolationValueIsTruncated(t *testing.T) {
	v := strictjson.NewViolation("cwd", strings.Repeat("ü", 5000), strictjson.Relative)
	require.LessOrEqual(t, len(v.Value), 1100)
	require.True(t, json.Valid(v.Value))
}

func TestRefuse_none(t *testing.T) {
	require.NoError(t, strictjson.Refuse())
	require.Nil(t, strictjson.ViolationsOf(nil))
}

func TestViolations(t *testing.T) {
	var v strictjson.Violations
	o := object(t, `{"cwd":"/a","dirs":["/b",1],"servers":[{"name":"x"},2],"many":[`+strings.Repeat(
		"0,", 200)+`0]}`)
	require.Equal(t, "/a", v.Text(o.Field("cwd")))
	require.NoError(t, v.Err())
	require.True(t, v.Empty())
	require.Nil(t, v.Texts(o.Field("dirs")))
	for _, item := range v.Items(o.Field("servers")) {
		if server, ok := v.Object(item); ok {
			v.Text(server.Field("name"))
		}
	}
	require.Equal(t, `dirs#1 type a string = 1; servers#1 type an object = 2`,
		list(strictjson.ViolationsOf(v.Err())))
	require.False(t, v.Full())
	v.Texts(o.Field("many"))
	require.True(t, v.Full())
	require.Len(t, strictjson.ViolationsOf(v.Err()), strictjson.MaxViolations)
}
