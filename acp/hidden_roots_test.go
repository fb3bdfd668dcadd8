package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// What has the name of the roots, but stands where a lifecycle request does not have it, is not read.
func TestA24_NeitherMetaNorAPromptMovesARoot(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	hidden := `{"additionalDirectories":["` + b + `"],"additionalRoots":["` + b + `"],"cwd":"` + b + `"}`
	with := func(params string) string {
		return altered(altered(params, "_meta", hidden), "roots", `["`+b+`"]`)
	}
	id := c.open(a)
	roots := func(id string) {
		t.Helper()
		require.Equal(t, []string{"[" + a + "]"}, c.texts(id, "roots"))
		require.Equal(t, a, c.find(id).Cwd)
		require.Equal(t, []string{}, c.find(id).AdditionalDirectories)
	}
	for _, method := range opening {
		var result struct{ SessionID string }
		require.NoError(t, json.Unmarshal(c.call(method, with(rootsParams(id, a))), &result))
		if result.SessionID == "" {
			result.SessionID = id
		}
		roots(result.SessionID)
	}
	prompt := altered(altered(with(promptParams(id, "roots")), "additionalDirectories", `["`+b+`"]`), "cwd", `"`+b+`"`)
	require.Equal(t, "end_turn", c.try("session/prompt", prompt).stopReason(t))
	c.call("session/set_mode", altered(with(idParams(id)), "additionalDirectories", `["`+b+`"]`))
	c.send(notification("session/cancel", with(idParams(id))), notification("_note", with(idParams(id))))
	c.texts(id, "state "+hidden)
	c.permit("allow-once")
	c.texts(id, `call session/request_permission {"options":[],"additionalDirectories":["`+b+`"]}`)
	roots(id)
}
