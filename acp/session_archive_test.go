package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

// archived returns the ids that session/list shows with a filter, and checks their member archived.
func (c *client) archived(filter string) []string {
	c.t.Helper()
	var result struct {
		Sessions []struct {
			SessionID string
			Archived  *bool
		}
	}
	require.NoError(c.t,
		json.Unmarshal(c.call("session/list", encode(map[string]any{"archived": filter})), &result))
	ids := []string{}
	for _, s := range result.Sessions {
		require.NotNil(c.t, s.Archived)
		require.True(c.t, filter == "include" || *s.Archived == (filter == "only"))
		ids = append(ids, s.SessionID)
	}
	return ids
}

// Clause A16.
func TestArchive(t *testing.T) {
	store := memstore.New(t)
	c, other := start(t, acp.Options{Store: store}), start(t, acp.Options{Store: store})
	a := folder(t)
	one, two := c.open(a), c.open(a)
	c.texts(one, "say one")
	prompt := c.beginTurn(two, "wait", "waiting")
	require.Equal(t, "{}", string(c.call("session/archive", idParams(two))))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t), "A28")
	require.Equal(t, "not_active", c.try("session/prompt", promptParams(two, "x")).reason(t))
	require.Equal(t, "{}", string(other.call("session/archive", idParams(two))), "it is archived")
	for _, seen := range []*client{c, other} {
		require.Len(t, seen.list(`{}`), 1)
		require.Equal(t, []string{one}, seen.archived("exclude"))
		require.Equal(t, []string{two}, seen.archived("only"))
		require.ElementsMatch(t, []string{one, two}, seen.archived("include"))
	}
	c.call("session/load", rootsParams(two, a))
	require.Equal(t, []string{two}, c.archived("only"), "a load does not bring it back")
	require.Equal(t, "{}", string(c.call("session/unarchive", idParams(two))))
	require.Equal(t, "{}", string(c.call("session/unarchive", idParams(two))))
	require.Empty(t, c.archived("only"))
	require.Equal(t, []string{"x"}, c.texts(two, "say x"),
		"unarchiving leaves the active session alone")

	for _, method := range []string{"session/archive", "session/unarchive", "session/status"} {
		require.Equal(t, "not_found", c.try(method, idParams("unknown")).reason(t))
		require.Equal(t, []string{"sessionId required"}, c.try(method, `{}`).findings(t))
		require.Equal(t, []string{"SessionId wrong_case"},
			c.try(method, `{"SessionId":"x"}`).findings(t))
	}
	require.Equal(t, []string{"archived unsupported"},
		c.try("session/list", `{"archived":"all"}`).findings(t))
	require.Equal(t, []string{"archived type"},
		c.try("session/list", `{"archived":true}`).findings(t))
	require.Len(t, c.list(`{"archived":null}`), 2)
}

// Clause A31.
func TestArchiveOfAnotherAgent(t *testing.T) {
	store := memstore.New(t)
	one := start(t, acp.Options{Store: store})
	two := start(t, acp.Options{Store: store, Backend: using(&scripted{kind: "other"})})
	id := one.open(folder(t))
	for _, method := range []string{"session/archive", "session/unarchive", "session/status",
		"session/delete"} {
		require.Equal(t, []string{"sessionId other_agent"},
			two.try(method, idParams(id)).findings(t))
	}
	require.Equal(t, []string{"sessionId other_agent"}, two.try("session/set_title",
		encode(map[string]any{"sessionId": id, "title": "x"})).findings(t))
	require.Equal(t, []string{id}, one.archived("exclude"))
	require.Empty(t, one.find(id).Title)
}

// An agent that serves these methods hears of them, with _meta in both directions, for sessions
// that are not open too.
//
// Clause P6.
func TestStoredRequestsReachAgent(t *testing.T) {
	a := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)},
		tells: backend.Raw(`{"title":"theirs","_meta":{"n":1.0}}`)}
	c := start(t, acp.Options{Backend: r.serve})
	id := c.list(`{}`)[0].SessionID
	params := `{"_meta":{"m":2.0},"sessionId":"` + id + `"}`
	require.Equal(t, `{"title":"theirs","_meta":{"n":1.0}}`,
		string(c.call("session/archive", params)))
	require.Equal(t, `{"title":"theirs","_meta":{"n":1.0}}`,
		string(c.call("session/unarchive", params)))
	require.JSONEq(t, `{"title":"x","_meta":{"n":1.0}}`,
		string(c.call("session/set_title", `{"_meta":{"m":2.0},"title":"x","sessionId":"`+id+`"}`)))
	require.Equal(t, "x", c.find(id).Title)
	require.Equal(t, `{"title":"theirs","_meta":{"n":1.0}}`,
		string(c.call("session/delete", params)))
	require.Equal(t, []string{
		`session/archive of one {"_meta":{"m":2.0}}`,
		`session/unarchive of one {"_meta":{"m":2.0}}`,
		`session/set_title of one {"_meta":{"m":2.0},"title":"x"}`,
		`session/delete of one {"_meta":{"m":2.0}}`,
	}, r.told)
}
