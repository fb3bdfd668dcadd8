package acp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause A15.
func TestListedRoots(t *testing.T) {
	c := start(t, acp.Options{})
	a, b := folder(t), folder(t)
	id := c.open(a+"/./", b+"//", a, b)
	got := c.find(id)
	require.Equal(t, a, got.Cwd)
	require.Equal(t, []string{b}, got.AdditionalDirectories)
	require.Contains(t, string(c.call("session/list", `{"additionalDirectories":[]}`)),
		`"sessions":[]`)
	c.open(a)
	require.Contains(t, string(c.call("session/list", `{"additionalDirectories":[]}`)),
		`"additionalDirectories":[]`)
}

// TestModel draws filters by cwd and by roots.
//
// Clause A16.
func TestListFilters(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	for _, absent := range []string{`{}`, `{"cwd":null,"cursor":null}`} {
		require.Equal(t, id, c.list(absent)[0].SessionID)
	}
	for params, reason := range map[string]string{
		`{"additionalDirectories":null}`:    "null",
		`{"additionalDirectories":[null]}`:  "null",
		`{"additionalDirectories":["rel"]}`: "relative",
		`{"cwd":"rel"}`:                     "relative",
		`{"cwd":1}`:                         "type",
		`{"cursor":1}`:                      "type",
		`{"cursor":""}`:                     "cursor",
		`{"cursor":"x"}`:                    "cursor",
		`{"CWD":"/x"}`:                      "wrong_case",
	} {
		m := c.try("session/list", params)
		require.Equal(t, reason, m.reason(t), params)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code, params)
	}
}

// Clause A18.
func TestListPages(t *testing.T) {
	c := start(t, acp.Options{}.With(acp.Tuning{MaxSessions: 200}))
	a := folder(t)
	want := map[string]bool{}
	for range 120 {
		want[c.open(a)] = true
	}
	seen, cursor, pages := map[string]bool{}, "", 0
	for {
		params := map[string]any{"cwd": a}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Sessions   []listed
			NextCursor string
		}
		require.NoError(t, json.Unmarshal(c.call("session/list", encode(params)), &page))
		for _, s := range page.Sessions {
			require.False(t, seen[s.SessionID], "listed twice")
			seen[s.SessionID] = true
		}
		if pages++; page.NextCursor == "" {
			break
		}
		require.Len(t, page.Sessions, 50)
		cursor = page.NextCursor
		require.Equal(t, "cursor",
			c.try("session/list", encode(map[string]any{"cursor": cursor})).reason(t))
	}
	require.Equal(t, 3, pages)
	require.Equal(t, want, seen)
}

// Clause A29.
func TestTitleIsOneLine(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	c.texts(id, "\n \t\nsay\tsome\u0001thing "+strings.Repeat("é", 500)+"\nmore")
	title := c.find(id).Title
	require.Equal(t, "say some thing "+strings.Repeat("é", 64)+"…", title)
	require.Len(t, []rune(title), 80)
	c.texts(id, "title "+strings.Repeat("x\n", 500))
	require.Len(t, []rune(c.find(id).Title), 80, "an agent's too")
	require.NotContains(t, c.find(id).Title, "\n")
}

// Clause A29.
func TestTitleIsWhatTheUserTyped(t *testing.T) {
	c := start(t, acp.Options{})
	for title, blocks := range map[string][]string{
		"fix it":             {"Sharing `AGENTS.md`:\n\n---\nBe kind.\n---", "/fix it"},
		"":                   {"/compact"},
		"write /a/b.txt":     {"/write /a/b.txt\ncontent"},
		"/usr/bin/x crashes": {"/usr/bin/x crashes"},
		"// why?":            {"// why?"},
		"say what":           {"<system-reminder>\nBe kind.\n</system-reminder>\nsay what"},
		"func main() {":      {"\n```go\nfunc main() {\n}\n```"},
		"say this":           {"say this", "<selected_code>\nsay that\n</selected_code>"},
	} {
		id := c.open(folder(t))
		var prompt []any
		for _, b := range blocks {
			prompt = append(prompt, map[string]any{"type": "text", "text": b})
		}
		c.call("session/prompt", encode(map[string]any{"sessionId": id, "prompt": prompt}))
		require.Equal(t, title, c.find(id).Title)
	}
}

// Clause A29.
func TestUpdatedAt(t *testing.T) {
	c := start(t, acp.Options{})
	a := folder(t)
	id := c.open(a)
	created := c.find(id).UpdatedAt
	require.True(t, strings.HasSuffix(created, "Z"), created)
	now := later(t, created)
	c.list(`{}`)
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, created, c.find(id).UpdatedAt)
	prompt := c.beginTurn(id, "wait", "waiting")
	started := c.find(id).UpdatedAt
	require.GreaterOrEqual(t, started, now)

	now = later(t, started)
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(id, a)), &fork))
	require.GreaterOrEqual(t, c.find(fork.SessionID).UpdatedAt, now)
	require.Equal(t, started, c.find(id).UpdatedAt, "A14: its source is untouched")

	now = later(t, started)
	c.send(notification("session/cancel", idParams(id)))
	c.response(prompt)
	require.GreaterOrEqual(t, c.find(id).UpdatedAt, now)
}

// behind is a backend that says which agent it stands for.
type behind struct {
	scripted
	profile string
}

func (b *behind) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "proxy", Profile: b.profile}, nil
}

// Clause A31.
func TestOtherAgentError(t *testing.T) {
	store := memstore.New(t)
	serve := func(profile string) *client {
		c := start(t, acp.Options{Store: store, Backend: using(&behind{profile: profile}),
			AgentCommand: func(a sessionstore.Agent) string { return "agent-in-front-of " + a.Profile }})
		return c
	}
	one, two := serve("opencode acp"), serve("claude-agent-acp")
	a := folder(t)
	id := one.open(a)
	require.Empty(t, two.list(`{}`), "the same kind, another profile")
	require.Len(t, serve("opencode acp").list(`{}`), 1)
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		m := two.try(method, rootsParams(id, a))
		require.Equal(t, "other_agent", m.reason(t))
		require.Contains(t, m.Error.Message, "agent-in-front-of opencode acp")
	}
}

// A list of roots matches by its spelling or by its real paths, not one entry by this and another
// by that.
//
// Clause A17.
func TestListByEitherKey(t *testing.T) {
	c := start(t, acp.Options{})
	a, b, d, links := folder(t), folder(t), folder(t), folder(t)
	one, two := filepath.Join(links, "one"), filepath.Join(links, "two")
	linkTo(t, one, b)
	linkTo(t, two, d)
	id := c.open(a, one, d)
	matches := func(roots ...string) bool {
		return len(c.list(encode(map[string]any{"additionalDirectories": roots}))) == 1
	}
	require.True(t, matches(one, d), "as it is spelled")
	require.True(t, matches(b, two), "by the real paths")
	require.True(t, matches(one, two), "which these have too")
	require.False(t, matches(d, one))

	linkTo(t, one, a)
	require.True(t, matches(one, d), "as it is spelled")
	require.True(t, matches(b, two), "by the real paths at the last request")
	require.False(t, matches(one, two), "one by its spelling, the other by its real path")
	require.False(t, matches(a, d), "that is not on record")
	c.call("session/resume", rootsParams(id, a, one, d))
	require.True(t, matches(a, two), "now it is")
	require.False(t, matches(b, d))

	require.NoError(t, os.Remove(d))
	require.True(t, matches(a, d), "what is missing has its text for a real path")
	require.False(t, matches(a, two+"/x"))
}

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
		if m.Method != "session/update" || json.Unmarshal(m.Params, &p) != nil ||
			p.SessionID != id || p.Update.SessionUpdate != "session_info_update" {
			continue
		}
		require.NotNil(c.t, p.Update.Title)
		all = append(all, *p.Update.Title)
	}
	return all
}

// Clause A29.
func TestTitleUpdates(t *testing.T) {
	c := start(t, acp.Options{})
	a := folder(t)
	id := c.open(a)
	require.Empty(t, c.titles(id))
	c.texts(id, "say first")
	require.Equal(t, []string{"say first"}, c.titles(id))
	c.texts(id, "say second")
	require.Equal(t, []string{"say first"}, c.titles(id), "a title is that of the first prompt")
	c.texts(id, "title Better")
	require.Equal(t, []string{"say first", "Better"}, c.titles(id),
		"a change of the backend's is said too")
	c.call("session/resume", rootsParams(id, a))
	c.texts(id, "say third")
	require.Equal(t, []string{"say first", "Better"}, c.titles(id))
	require.Equal(t, "Better", c.find(id).Title)
}

// Clause A35.
func TestUnusedSessionsAreNotListed(t *testing.T) {
	age := 2 * time.Minute
	store := sqlite.New(sqlite.Options{Dir: t.TempDir(), Now: func() time.Time {
		return time.Now().Add(-age)
	}})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	c, other := start(t, acp.Options{Store: store}), start(t, acp.Options{Store: store})
	a, b := folder(t), folder(t)
	active, closed, prompted, archived := c.open(a, b), c.open(a, b), c.open(a, b), c.open(a, b)
	c.texts(prompted, "say one")
	for _, id := range []string{closed, prompted} {
		c.call("session/close", idParams(id))
	}
	c.call("session/archive", idParams(archived))
	age = 30 * time.Second
	young := other.open(a, b)
	other.call("session/close", idParams(young))
	shown := func(c *client, params string) (ids []string) {
		for _, s := range c.list(params) {
			ids = append(ids, s.SessionID)
		}
		return ids
	}
	for _, params := range []string{`{}`, encode(map[string]any{"cwd": a}),
		encode(map[string]any{"cwd": a, "additionalDirectories": []string{b}})} {
		require.ElementsMatch(t, []string{active, prompted, young}, shown(c, params))
		require.ElementsMatch(t, []string{prompted, young}, shown(other, params),
			"it is active in another process")
	}
	require.Equal(t, []string{archived}, shown(c, `{"archived":"only"}`))

	c.call("session/load", rootsParams(closed, a))
	require.Contains(t, shown(c, `{}`), closed, "A19")
	c.texts(closed, "say two")
	c.call("session/close", idParams(closed))
	require.Contains(t, shown(other, `{}`), closed)
}
