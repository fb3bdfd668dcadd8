package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// titles are those that a session's updates said.
func (c *client) titles(id string) []string {
	c.t.Helper()
	all := []string{}
	for _, m := range c.messages() {
		var p struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Title         *string
			}
		}
		if m.Method != "session/update" || json.Unmarshal(m.Params, &p) != nil || p.SessionID != id || p.Update.SessionUpdate != "session_info_update" {
			continue
		}
		require.NotNil(c.t, p.Update.Title)
		all = append(all, *p.Update.Title)
	}
	return all
}

func TestA29_EachChangeOfATitleIsSaidOnce(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	require.Empty(t, c.titles(id))
	c.texts(id, "say first")
	require.Equal(t, []string{"say first"}, c.titles(id))
	c.texts(id, "say second")
	require.Equal(t, []string{"say first"}, c.titles(id), "a title is that of the first prompt")
	c.texts(id, "title Better")
	require.Equal(t, []string{"say first", "Better"}, c.titles(id), "a change of the runtime's is said too")
	c.call("session/resume", rootsParams(id, a))
	c.texts(id, "say third")
	require.Equal(t, []string{"say first", "Better"}, c.titles(id))
	require.Equal(t, "Better", c.find(id).Title)
}

// The members of session_info_update are the schema's: neither cwd nor roots are among them.
func TestA21_ATitleIsSaidWithoutRoots(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	id := c.open(folder(t), folder(t))
	c.texts(id, "say first")
	m, _ := c.await(0, func(m message) bool { return strings.Contains(string(m.Params), "session_info_update") })
	require.JSONEq(t, `{"sessionId":"`+id+`","update":{"sessionUpdate":"session_info_update","title":"say first"}}`, string(m.Params))
}
