package acp_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// opening are the methods that make a session active; all but the first name one that is stored.
var opening = []string{"session/new", "session/load", "session/resume", "session/fork"}

// findings are an error's violations, each as "field[index] reason", and nothing else in its data.
func (m message) findings(t tester) []string {
	t.Helper()
	require.NotNil(t, m.Error, "not refused: %s", m.Result)
	var data map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(m.Error.Data, &data), m.Error.Message)
	require.Len(t, data, 1)
	var violations []struct {
		Field  string
		Index  *int
		Reason string
	}
	require.NoError(t, json.Unmarshal(data["violations"], &violations))
	var all []string
	for _, v := range violations {
		at := v.Field
		if v.Index != nil {
			at = fmt.Sprintf("%s[%d]", v.Field, *v.Index)
		}
		all = append(all, at+" "+v.Reason)
	}
	return all
}

// altered are the params of a request with a member set to raw JSON, or without it if that is "".
func altered(params, name, raw string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		panic(err)
	}
	if delete(members, name); raw != "" {
		members[name] = json.RawMessage(raw)
	}
	// Not encoded again: a lone surrogate would not stay one.
	text, separator := "{", ""
	for name, value := range members {
		text += separator + encode(name) + ":" + string(value)
		separator = ","
	}
	return text + "}"
}

// Whatever a method does with its roots, they are held to the same rules, and when one is broken nothing happens.
func TestA3_A4_A5_A16_RootsAreHeldToTheSameRulesByEveryMethod(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a, b)
	c.texts(id, "say one")
	before, asked := string(c.call("session/list", `{}`)), r.noted()
	refused := func(method, params string, want ...string) {
		t.Helper()
		m := c.try(method, params)
		require.Equal(t, want, m.findings(t), "%s %s", method, params)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	}

	entries := map[string]string{
		"null": "null", "1": "type", "true": "type", "[]": "type", "{}": "type",
		`""`: "empty", `"rel"`: "relative", `"."`: "relative", `"/x\u0000"`: "nul", `"/\ud800"`: "encoding", `"/\udc00x"`: "encoding",
	}
	for _, method := range append(opening, "session/list") {
		params := rootsParams(id, a)
		if method == "session/list" {
			params = `{}`
		}
		t.Run("A3/"+method, func(t *testing.T) {
			for value, reason := range map[string]string{"null": "null", "{}": "type", `"` + b + `"`: "type", "1": "type", "false": "type"} {
				refused(method, altered(params, "additionalDirectories", value), "additionalDirectories "+reason)
			}
		})
		t.Run("A4/"+method, func(t *testing.T) {
			for value, reason := range entries {
				refused(method, altered(params, "additionalDirectories", `["`+b+`",`+value+`]`), "additionalDirectories[1] "+reason)
				if method != "session/list" || value != "null" {
					refused(method, altered(params, "cwd", value), "cwd "+reason)
				}
			}
			if method != "session/list" {
				refused(method, altered(params, "cwd", ""), "cwd required")
			}
		})
		t.Run("A5/"+method, func(t *testing.T) {
			refused(method, altered(altered(params, "cwd", `"rel"`), "additionalDirectories", `[7,"",null,"`+b+`","x"]`),
				"cwd relative", "additionalDirectories[0] type", "additionalDirectories[1] empty",
				"additionalDirectories[2] null", "additionalDirectories[4] relative")
		})
	}
	for _, method := range opening {
		t.Run("A6/"+method, func(t *testing.T) {
			missing := filepath.Join(a, "missing")
			refused(method, rootsParams(id, a, b, missing), "additionalDirectories[1] missing")
			require.Contains(t, c.try(method, rootsParams(id, a, b, missing)).Error.Message, missing)
		})
	}
	require.Equal(t, before, string(c.call("session/list", `{}`)), "A5: no session was made, and none changed")
	require.Equal(t, asked, r.noted(), "A5: the runtime heard of nothing")
	require.Equal(t, []string{"[" + a + ", " + b + "]"}, c.texts(id, "roots"))
}
