package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/web"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// client is somebody who has opened the page.
type client struct {
	*http.Client
	t    testing.TB
	home string // the address of the page without the token
}

// enter opens the page with its token.
func enter(t testing.TB, page *web.Server) client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	home, _, _ := strings.Cut(page.URL(), "?")
	c := client{&http.Client{Jar: jar, Transport: &http.Transport{}}, t, home}
	t.Cleanup(c.CloseIdleConnections)
	response, err := c.Get(page.URL())
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, home, response.Request.URL.String(), "the token leaves the address")
	return c
}

// status sends a request, which change may change, and returns the status and text of the answer.
func (c client) status(path string, change func(*http.Request)) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.home+path, http.NoBody)
	require.NoError(c.t, err)
	if change != nil {
		change(r)
	}
	response, err := c.Do(r)
	require.NoError(c.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	require.Contains(c.t, response.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
	require.NotContains(c.t, response.Header.Get("Content-Security-Policy"), "unsafe")
	require.Equal(c.t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	require.Equal(c.t, "no-referrer", response.Header.Get("Referrer-Policy"))
	return response.StatusCode, string(body)
}

// get decodes the answer to a request.
func (c client) get(into any, name string, parameters ...any) {
	c.t.Helper()
	q := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		q.Set(fmt.Sprint(parameters[i]), fmt.Sprint(parameters[i+1]))
	}
	status, body := c.status("api/"+name+"?"+q.Encode(), nil)
	require.Equal(c.t, http.StatusOK, status, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), into))
}

func TestOnlyThePageItselfIsServed(t *testing.T) {
	page := serve(t, web.Options{Store: memstore.New(t)})
	c := enter(t, page)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	_, port, _ := strings.Cut(strings.TrimPrefix(c.home, "http://"), ":")
	port, _, _ = strings.Cut(port, "/")
	stranger := client{&http.Client{Transport: c.Transport}, t, c.home}
	for name, test := range map[string]struct {
		client client
		path   string
		change func(*http.Request)
		want   int
	}{
		"an answer":               {c, "api/facets", nil, http.StatusOK},
		"by name":                 {c, "", host("localhost:" + port), http.StatusOK},
		"its origin":              {c, "api/facets", header("Origin", strings.TrimSuffix(c.home[:strings.LastIndex(c.home[:len(c.home)-1], "/")], "/")), http.StatusOK},
		"another host":            {c, "api/facets", host("evil.example:" + port), http.StatusMisdirectedRequest},
		"another port":            {c, "api/facets", host("127.0.0.1:1"), http.StatusMisdirectedRequest},
		"another origin":          {c, "api/facets", header("Origin", "http://evil.example"), http.StatusForbidden},
		"the origin null":         {c, "api/facets", header("Origin", "null"), http.StatusForbidden},
		"another site":            {c, "api/facets", header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"another port's page":     {c, "app.js", header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"a link to the page":      {c, "", header("Sec-Fetch-Site", "cross-site"), http.StatusOK},
		"no cookie":               {stranger, "api/facets", nil, http.StatusUnauthorized},
		"another cookie":          {stranger, "api/facets", header("Cookie", "acp-agent-inspect=x"), http.StatusUnauthorized},
		"another token":           {stranger, "?token=x", nil, http.StatusUnauthorized},
		"another method":          {c, "api/facets", func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"another path":            {c, "../api/facets", nil, http.StatusNotFound},
		"a file that is not ours": {c, "server.go", nil, http.StatusNotFound},
		"no session":              {c, "api/session?id=none", nil, http.StatusNotFound},
		"no number":               {c, "api/pages?id=none&from=x", nil, http.StatusBadRequest},
		"no cursor":               {c, "api/sessions?cursor=x", nil, http.StatusBadRequest},
		"no trace":                {c, "api/trace?name=/etc/passwd", nil, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			test.client.t = t
			status, body := test.client.status(test.path, test.change)
			require.Equal(t, test.want, status, body)
		})
	}
}

func TestTheCookieStaysInThePage(t *testing.T) {
	page := serve(t, web.Options{Store: memstore.New(t)})
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := direct.Get(page.URL())
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Len(t, response.Cookies(), 1)
	cookie := response.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, response.Header.Get("Location"), cookie.Path, "servers on other ports must not get it")
	require.Greater(t, len(cookie.Path), 10)
}

// The page shows the sessions of the local user, and not those of a server's users.
func TestSessionsOfOthersAreNotShown(t *testing.T) {
	store := memstore.New(t)
	dir := t.TempDir()
	conversation(t, store, sessionstore.Session{ID: "mine", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, dir, "a")}, "mine")
	conversation(t, store.For("ana"), sessionstore.Session{ID: "hers", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, dir, "b")}, "hers")
	c := enter(t, serve(t, web.Options{Store: store}))
	var list struct{ Sessions []struct{ ID string } }
	c.get(&list, "sessions")
	require.Len(t, list.Sessions, 1)
	require.Equal(t, "mine", list.Sessions[0].ID)
	for _, path := range []string{"session?id=hers", "pages?id=hers&from=0", "entries?id=hers&from=0&to=9", "context?id=hers", "changes?id=hers"} {
		status, _ := c.status("api/"+path, nil)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}

func TestSessionsAreFilteredAndListedInParts(t *testing.T) {
	store := memstore.New(t)
	sessions(t, store, t.TempDir(), 10)
	c := enter(t, serve(t, web.Options{Store: store}))
	type list struct {
		Sessions []struct {
			ID, Title string
			Folders   []string
		}
		Next string
	}
	seen := map[string]bool{}
	for cursor := ""; ; {
		var part list
		c.get(&part, "sessions", "text", "site", "cursor", cursor)
		for _, one := range part.Sessions {
			require.False(t, seen[one.ID])
			require.Contains(t, one.Folders[0], "src/site")
			seen[one.ID] = true
		}
		if cursor = part.Next; cursor == "" {
			break
		}
	}
	require.Len(t, seen, 80)
	var part list
	c.get(&part, "sessions", "agent", "opencode", "text", "FAIL orders")
	require.Len(t, part.Sessions, 1)
	c.get(&part, "sessions", "archived", "1")
	require.Empty(t, part.Sessions)
}

// A session that an editor has opened and nobody has used is not listed, agents have names for
// people, and what one has cost is shown.
//
// Clause K1.
func TestSessionsWithoutContentAreHidden(t *testing.T) {
	store := memstore.New(t)
	dir := t.TempDir()
	used := sessionstore.Session{ID: "used", Agent: sessionstore.Agent{Kind: "proxy"}, Keys: keys(t, dir, "a")}
	lease := conversation(t, store, used, "hi")
	require.NoError(t, store.Charge(t.Context(), lease, []sessionstore.Charge{
		{Meter: sessionstore.CostMeter, Unit: "USD", Amount: 1.5}, {Meter: sessionstore.CostMeter, Unit: "EUR", Amount: 2},
		{Meter: sessionstore.CostMeter, Unit: "GBP"}, {Meter: sessionstore.TurnMeter, Amount: 1},
	}))
	_, err := store.Create(t.Context(), sessionstore.Session{
		ID: "empty", Agent: used.Agent, Keys: keys(t, dir, "b")})
	require.NoError(t, err)
	c := enter(t, serve(t, web.Options{Store: store}))
	type shown struct {
		ID, Agent string
		Cost      []string
	}
	var list struct{ Sessions []shown }
	c.get(&list, "sessions")
	want := shown{"used", "agent without a name", []string{"2.0000 EUR", "1.5000 USD"}}
	require.Equal(t, []shown{want}, list.Sessions)
	var one shown
	c.get(&one, "session", "id", "used")
	require.Equal(t, want, one)
	var facets struct{ Total int }
	c.get(&facets, "facets")
	require.Equal(t, 1, facets.Total)
}

// An address that was mistyped leads to a page that says so.
func TestMistypedAddresses(t *testing.T) {
	c := enter(t, serve(t, web.Options{Store: memstore.New(t)}))
	for _, path := range []string{"sesions", "../sessions", "../"} {
		status, body := c.status(path, nil)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, body, "<h1>No such page</h1>")
		require.NotContains(t, body, c.home, "the secret path stays secret")
	}
}

// view is what the page gets of a part of a conversation.
type view struct {
	Entries    []tree
	Unfinished bool
}

// tree is an element: its tag, its class and what is in it.
type tree struct {
	Tag, Text  string
	Attributes []string
	Children   []tree
}

func (n tree) class() string {
	if len(n.Attributes) == 0 {
		return ""
	}
	return n.Attributes[1]
}

func (n tree) text() string {
	all := n.Text
	for _, child := range n.Children {
		all += child.text()
	}
	return all
}

// part is a page of a conversation.
type part struct {
	From, To int64
	Updates  int
}

// allPages returns the pages of a conversation.
func (c client) allPages(id string) (list []part) {
	c.t.Helper()
	for from, more := int64(0), true; more; {
		var answer struct {
			Pages []part
			More  bool
		}
		c.get(&answer, "pages", "id", id, "from", from)
		list, more = append(list, answer.Pages...), answer.More
		if more {
			from = list[len(list)-1].To
		}
	}
	return list
}

func TestPagesMakeTheWholeConversation(t *testing.T) {
	store := memstore.New(t)
	long(t, store, sessionstore.Session{ID: "long", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, t.TempDir(), "a")}, 25_000)
	c := enter(t, serve(t, web.Options{Store: store}))
	list := c.allPages("long")
	require.Greater(t, len(list), 100)
	updates, words, calls := 0, 0, 0
	for i, p := range list {
		if i > 0 {
			require.LessOrEqual(t, list[i-1].To, p.From)
		}
		updates += p.Updates
		if i%20 != 0 && i != len(list)-1 {
			continue // looking at some is enough
		}
		var v view
		c.get(&v, "entries", "id", "long", "from", p.From, "to", p.To)
		require.False(t, v.Unfinished)
		for _, e := range v.Entries {
			kind, status, _ := strings.Cut(e.class(), " ")
			switch kind {
			case "answer":
				require.Equal(t, 8, strings.Count(e.text(), "piece"), "an answer is not torn")
				words++
			case "call":
				require.Equal(t, "completed", status)
				require.Contains(t, e.text(), "completed")
				calls++
			}
		}
	}
	require.Equal(t, 25_001, updates)
	require.NotZero(t, words)
	require.NotZero(t, calls)
}

// The last state of a call is shown where it began, and only there.
func TestCallsThatEndLaterAreShownOnce(t *testing.T) {
	for name, turns := range map[string]int{"soon": 3, "much later": 40} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(t)
			lease := conversation(t, store, sessionstore.Session{ID: "one", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, t.TempDir(), "a")}, "hi",
				map[string]any{"sessionUpdate": "tool_call", "toolCallId": "slow", "title": "Slow", "status": "in_progress"})
			for i := range turns {
				var part []map[string]any
				for j := range 150 {
					part = append(part, said("agent_message_chunk", "word "), said("agent_thought_chunk", fmt.Sprint("thought ", j)))
				}
				// The last update is within an answer, which it does not tear.
				if i == turns-1 {
					part = append(part, said("agent_message_chunk", "before "),
						map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "slow", "status": "failed"},
						said("agent_message_chunk", "after"))
				}
				turn(t, store, lease, "go on", part...)
			}
			c := enter(t, serve(t, web.Options{Store: store}))
			var calls []string
			var last string
			for _, p := range c.allPages("one") {
				var v view
				c.get(&v, "entries", "id", "one", "from", p.From, "to", p.To)
				for _, e := range v.Entries {
					if strings.HasPrefix(e.class(), "call") {
						calls = append(calls, e.text())
						continue
					}
					last = e.Children[len(e.Children)-1].text()
				}
			}
			require.Equal(t, []string{"✕Slow failed"}, calls)
			require.Equal(t, "before after", last)
		})
	}
}

// A page of a long history takes no more memory than one of a short one.
func TestMemoryDoesNotGrowWithTheHistory(t *testing.T) {
	store := memstore.New(t)
	dir := t.TempDir()
	c := enter(t, serve(t, web.Options{Store: store}))
	used := func(id string, updates int) uint64 {
		long(t, store, sessionstore.Session{ID: sessionstore.ID(id), Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys(t, dir, "a")}, updates)
		list := c.allPages(id)
		last := list[len(list)-1]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v view
		for range 5 {
			c.get(&v, "entries", "id", id, "from", last.From, "to", last.To)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	short, long := used("short", 10_000), used("long", 40_000)
	require.Less(t, long, 2*short)
}

func TestTracesAreServedInParts(t *testing.T) {
	path := writeTrace(t, t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "notes.txt"), []byte("not a trace\n"), 0o600))
	other := writeTrace(t, t.TempDir())
	continueTrace(t, other)
	c := enter(t, serve(t, web.Options{Store: memstore.New(t), Traces: []string{filepath.Dir(path), filepath.Dir(other)}}))
	var files []struct{ Name string }
	c.get(&files, "traces")
	require.Len(t, files, 2)
	for _, path := range []string{path, other} {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		part := func(bytes string) (int, string) {
			return c.status("api/trace?"+url.Values{"name": {path}}.Encode(), func(r *http.Request) { r.Header.Set("Range", "bytes="+bytes) })
		}
		status, begin := part("0-99")
		require.Equal(t, http.StatusPartialContent, status)
		require.Len(t, begin, 100)
		_, rest := part("100-9999999")
		require.Equal(t, string(content), begin+rest)
	}
}
