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
	for reason, text := range map[strictjson.Reason]string{
		strictjson.Null:          "is null: omit it or give a value",
		strictjson.Type:          "has the wrong type",
		strictjson.Required:      "is missing: it is required",
		strictjson.Empty:         "is empty: give an absolute path",
		strictjson.Relative:      "is not absolute: give an absolute path",
		strictjson.NUL:           "contains a NUL character, which is not allowed in paths",
		strictjson.Encoding:      "is not valid Unicode text",
		strictjson.DuplicateKey:  "is given twice in one object: give it once",
		strictjson.WrongCase:     "is spelled in the wrong case",
		strictjson.CwdMismatch:   "is not the session's working directory",
		strictjson.TooMany:       "has too many folders",
		strictjson.TooLong:       "is too long",
		strictjson.Denied:        "is refused by policy: it is in none of the folders that you may open",
		strictjson.Missing:       "does not exist: create the folder or give another one",
		strictjson.NotDirectory:  "is not a folder: give a folder",
		strictjson.Unreadable:    "cannot be opened",
		strictjson.Unsupported:   "is not supported",
		strictjson.InvalidCursor: "is not a cursor of this list: start again without a cursor",
		strictjson.OtherAgent:    "belongs to another agent",
	} {
		require.Equal(t, "cwd "+text, strictjson.NewViolation("cwd", nil, reason).String())
	}
	known := strictjson.NewViolation("prompt", nil, strictjson.Type).Expecting("an array")
	require.Equal(t, "prompt has the wrong type: want an array", known.String())
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
	require.Equal(t, []string{"/b", ""}, v.Texts(o.Field("dirs")))
	for _, item := range v.Items(o.Field("servers")) {
		if server, ok := v.Object(item); ok {
			v.Text(server.Field("name"))
		}
	}
	require.Equal(t, `dirs#1 type a string = 1; servers#1 type an object = 2`,
		list(strictjson.ViolationsOf(v.Err())))
	v.Texts(o.Field("many"))
	for range v.Items(o.Field("servers")) {
		require.Fail(t, "no more is collected")
	}
	require.Len(t, strictjson.ViolationsOf(v.Err()), strictjson.MaxViolations)
}
