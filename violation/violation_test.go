package violation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/violation"
)

func Example() {
	err := violation.Refuse(
		violation.New("additionalDirectories", "src", violation.Relative).At(1),
		violation.New("mcpServers", nil, violation.Required),
	)
	fmt.Println(err)
	for _, v := range violation.Of(err) {
		fmt.Println(v.Reason)
	}
	// Output:
	// additionalDirectories[1] "src" is not absolute: give an absolute path (and 1 more)
	// relative
	// required
}

func TestA5_DataNamesFieldIndexValueAndReason(t *testing.T) {
	raw, err := json.Marshal(violation.New("additionalDirectories", json.RawMessage(`{"a":1}`), violation.Type).At(0))
	require.NoError(t, err)
	require.JSONEq(t, `{"field":"additionalDirectories","index":0,"value":{"a":1},"reason":"type"}`, string(raw))
}

func TestA5_EveryReasonHasWords(t *testing.T) {
	for _, reason := range []violation.Reason{
		violation.Null, violation.Type, violation.Required, violation.Empty, violation.Relative, violation.NUL,
		violation.Encoding, violation.DuplicateKey, violation.WrongCase, violation.CwdMismatch, violation.TooMany,
		violation.Denied, violation.Missing, violation.NotDirectory, violation.Unreadable, violation.Unsupported,
		violation.InvalidCursor, violation.OtherAgent,
	} {
		text := violation.New("cwd", "/x", reason).String()
		require.NotContains(t, text, string(reason)+"\x00")
		require.Greater(t, len(text), len("cwd \"/x\" "), reason)
	}
}

func TestAnEchoIsBounded(t *testing.T) {
	v := violation.New("cwd", strings.Repeat("ü", 5000), violation.Relative)
	require.LessOrEqual(t, len(v.Value), 1100)
	require.True(t, json.Valid(v.Value))
}

func TestNoViolationsAreNoError(t *testing.T) {
	require.NoError(t, violation.Refuse())
	require.Nil(t, violation.Of(nil))
}
