package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/strictjson"
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

func TestA5_DataNamesFieldIndexValueAndReason(t *testing.T) {
	raw, err := json.Marshal(strictjson.NewViolation("additionalDirectories", json.RawMessage(`{"a":1}`), strictjson.Type).At(0))
	require.NoError(t, err)
	require.JSONEq(t, `{"field":"additionalDirectories","index":0,"value":{"a":1},"reason":"type"}`, string(raw))
}

func TestA5_EveryReasonHasWords(t *testing.T) {
	for _, reason := range []strictjson.Reason{
		strictjson.Null, strictjson.Type, strictjson.Required, strictjson.Empty, strictjson.Relative, strictjson.NUL,
		strictjson.Encoding, strictjson.DuplicateKey, strictjson.WrongCase, strictjson.CwdMismatch, strictjson.TooMany,
		strictjson.Denied, strictjson.Missing, strictjson.NotDirectory, strictjson.Unreadable, strictjson.Unsupported,
		strictjson.InvalidCursor, strictjson.OtherAgent,
	} {
		text := strictjson.NewViolation("cwd", "/x", reason).String()
		require.NotContains(t, text, string(reason)+"\x00")
		require.Greater(t, len(text), len("cwd \"/x\" "), reason)
	}
}

func TestAnEchoIsBounded(t *testing.T) {
	v := strictjson.NewViolation("cwd", strings.Repeat("ü", 5000), strictjson.Relative)
	require.LessOrEqual(t, len(v.Value), 1100)
	require.True(t, json.Valid(v.Value))
}

func TestNoViolationsAreNoError(t *testing.T) {
	require.NoError(t, strictjson.Refuse())
	require.Nil(t, strictjson.ViolationsOf(nil))
}
