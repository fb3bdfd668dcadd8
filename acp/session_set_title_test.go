package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

func titleParams(id, title string) string {
	return encode(map[string]any{"sessionId": id, "title": title})
}

// Clause A29.
func TestSetTitle(t *testing.T) {
	store := memstore.New(t)
	c, other := start(t, acp.Options{Store: store}), start(t, acp.Options{Store: store})
	a := folder(t)
	id := c.open(a)
	require.Equal(t, `{"title":"my title"}`,
		string(c.call("session/set_title", titleParams(id, " my\n title "))))
	require.Contains(t, encode(c.messages()), `"title":"my title"`, "an active session is told")
	c.texts(id, "title the agent's")
	c.texts(id, "say first")
	require.NotContains(t, encode(c.messages()), `the agent's`)
	require.Equal(t, "my title", c.find(id).Title)

	require.JSONEq(t, `{"title":"elsewhere"}`,
		string(other.call("session/set_title", titleParams(id, "elsewhere"))),
		"it is not active there")
	require.NotContains(t, encode(other.messages()), "session_info_update")
	c.texts(id, "title the agent's")
	require.Equal(t, "elsewhere", c.find(id).Title)
	c.call("session/load", rootsParams(id, a))
	c.texts(id, "title the agent's")
	require.Equal(t, "elsewhere", other.find(id).Title)

	long := c.call("session/set_title", titleParams(id, strings.Repeat("x", 10_000)))
	var result struct{ Title string }
	require.NoError(t, json.Unmarshal(long, &result))
	require.Less(t, len(result.Title), 300)
	require.Equal(t, result.Title, c.find(id).Title)

	for params, want := range map[string][]string{
		idParams(id): {"title required"}, `{"sessionId":"` + id + `","title":null}`: {"title null"},
		`{"title":7}`: {"sessionId required", "title type"}, `{"sessionId":"` + id +
			`","Title":"x"}`: {"Title wrong_case"},
	} {
		require.ElementsMatch(t, want, c.try("session/set_title", params).findings(t), params)
	}
	require.Equal(t, "not_found", c.try("session/set_title", titleParams("unknown", "x")).reason(t))
	require.Equal(t, result.Title, c.find(id).Title)
}

// Clause A29.
func TestClearTitle(t *testing.T) {
	c := start(t, acp.Options{})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say first")
	c.call("session/set_title", titleParams(id, "mine"))
	require.Equal(t, `{"title":""}`, string(c.call("session/set_title", titleParams(id, " \n"))))
	require.Contains(t, encode(c.messages()),
		`"update":{"sessionUpdate":"session_info_update","title":null}`)
	require.Empty(t, c.find(id).Title)
	c.texts(id, "say second")
	require.Equal(t, "say second", c.find(id).Title, "the next prompt gives it a title")
	c.call("session/close", idParams(id))
	c.call("session/set_title", titleParams(id, "mine"))
	c.call("session/set_title", titleParams(id, ""))
	c.call("session/load", rootsParams(id, a))
	c.texts(id, "title new")
	require.Equal(t, "new", c.find(id).Title)
}
