package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestGarbageOnStdout(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "garbage"))
	require.Equal(t, "0", f.call("s.count", ""))
	require.Contains(t, f.logs.String(), "Welcome to the server!")
}

func TestFloodOfNotifications(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxNotices: 2000}))
	f.change(open(t, folder(t)), self("s", "flood"))
	require.Equal(t, "after the flood", f.call("s.count", ""))
}

func TestThousandRequestsAtOnce(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "thousand"))
	f.call("s.count", "")
	require.Eventually(t, func() bool { return f.logs.Count("1000 answers") == 1 }, patience, 5*time.Millisecond)
}

func TestRequestBeforeInitialized(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "early"))
	require.Equal(t, "1", f.call("s.count", ""), "it is answered")
}

func TestServerExitsOnUnknownRequest(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "no discover"))
	require.Equal(t, "0", f.call("s.count", ""))
	require.Equal(t, "2025-11-25", f.Servers()[0].Revision)
}

func TestSilentServer(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{StartTimeout: 300 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, MaxRestarts: 1}))
	f.change(open(t, folder(t)), self("s", "silent"))
	_, err := f.try("s.count", "")
	require.ErrorContains(t, err, "has not answered initialize within 300ms")
}

func TestRestartAfterCrash(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "sdk"))
	_, err := f.try("s.die", "")
	require.ErrorContains(t, err, "MCP server s: it ended during the call")
	require.NotZero(t, f.where("s").PID, "started again")
	require.Equal(t, 1, f.Servers()[0].Restarts)
	require.Contains(t, f.logs.String(), "exit status 4")
	require.Contains(t, f.logs.String(), "out of memory")
}

func TestGiveUpAfterRestarts(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 2, Backoff: time.Millisecond}))
	f.change(open(t, folder(t)), self("s", "exit"))
	_, err := f.try("s.x", "")
	require.ErrorContains(t, err, "exit status 3")
	status := f.state(backend.ServerFailed)
	require.Equal(t, 2, status.Restarts)

	f = newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{Backoff: time.Hour}))
	f.change(open(t, folder(t)), mcpclient.Config{Name: "s", Transport: mcpclient.Stdio, Command: "no-such-command-anywhere"})
	for range 2 {
		_, err = f.try("s.x", "")
		require.ErrorContains(t, err, "no-such-command-anywhere")
		require.Regexp(t, `; it can be started again in \d+s$`, err.Error())
	}
}

func TestLineTooLong(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxMessage: 1 << 20}))
	f.change(open(t, folder(t)), self("s", "long line"))
	_, err := f.try("s.count", "")
	require.EqualError(t, err, "MCP server s: it sent a message of more than 1 MiB, which is the limit")
	require.Eventually(t, func() bool { return f.logs.Count("more than 1 MiB") > 0 }, patience, 5*time.Millisecond)

	h, c := newFakeServer(t)
	f.change(open(t, folder(t)), c)
	h.respond("tools/call", `"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`)
	_, err = f.try("h.x", "")
	require.EqualError(t, err, "MCP server h: it sent a message of more than 1 MiB, which is the limit")
}

func TestUnreadableAnswer(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "null answers"))
	_, err := f.try("s.count", "")
	require.Error(t, err)
	tools, err := f.list(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 3, "the connection still works")
}

// Clause W9.
func TestGrandchildren(t *testing.T) {
	h := proctest.Watch(t)
	f := newFixture(t, mcpclient.Options{})
	c := self("s", "sdk", h.Env())
	wrapper := c
	wrapper.Name, wrapper.Command, wrapper.Args = "wrapper", "sh", []string{"-c", "", c.Command}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh here")
	}
	// A job in the background has no input unless it is given ours.
	wrapper.Args[1] = `exec 3<&0; "$0" <&3 & wait`
	f.change(open(t, folder(t)), wrapper)
	f.call("wrapper.echo", "{}")
	grandchild := h.Next()
	require.NoError(t, f.Close(t.Context()))
	grandchild.Ended()
}

// Clause W9.
func TestStubbornServer(t *testing.T) {
	h := proctest.Watch(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), self("s", "stubborn", h.Env()))
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		_, _ = f.list(context.Background())
	}()
	stubborn := h.Next()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, f.Close(ctx))
	stubborn.Ended()
	<-listed
}

// fakeServer is an HTTP server that sends what a test wants.
type fakeServer struct {
	mu      sync.Mutex
	replies map[string]string // the members of a response, by method
	heard   map[string]int    // how often a method was asked for
}

// newFakeServer returns a server with one tool, and its configuration.
func newFakeServer(t testing.TB) (*fakeServer, mcpclient.Config) {
	t.Helper()
	h := &fakeServer{heard: map[string]int{}, replies: map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`,
		"ping":       `"result":{}`,
		"tools/list": `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`,
		"tools/call": `"result":{"content":[{"type":"text","text":"called"}]}`,
	}}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return h, mcpclient.Config{Name: "h", Transport: mcpclient.HTTP, URL: s.URL,
		Policy: mcpclient.Policy{SettleWithoutRoots: time.Millisecond}} // it never asks for roots
}

// respond sets the members of the response to a method.
func (h *fakeServer) respond(method, members string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replies[method] = members
}

// count returns how often a method was requested.
func (h *fakeServer) count(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard[method]
}

// ServeHTTP implements [http.Handler].
func (h *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	case json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.mu.Lock()
	members, ok := h.replies[m.Method]
	h.heard[m.Method]++
	h.mu.Unlock()
	if !ok {
		members = `"error":{"code":-32601,"message":"unknown"}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, members)
}

// size returns the number of bytes of text in blocks.
func size(blocks []json.RawMessage) (n int) {
	for _, b := range blocks {
		n += len(b)
	}
	return n
}

func TestErrorLength(t *testing.T) {
	h, c := newFakeServer(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), c)
	h.respond("tools/call", `"error":{"code":1,"message":"`+strings.Repeat("x", 4<<20)+`"}`)
	_, err := f.try("h.x", "{}")
	require.ErrorContains(t, err, "MCP server h: ")
	require.Less(t, len(err.Error()), 64<<10)
	require.Less(t, len(f.host.all()), 64<<10)
	require.Less(t, len(f.logs.String()), 64<<10)
}

func TestManySmallBlocks(t *testing.T) {
	const limit = 10_000
	h, c := newFakeServer(t)
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxResultBytes: limit, MaxShownBytes: limit / 10}))
	f.change(open(t, folder(t)), c)
	for _, block := range []string{`{"type":"image","data":"","mimeType":""}`, `{"type":"text","text":""}`} {
		h.respond("tools/call", `"result":{"content":[`+strings.Repeat(block+",", 5_000)+block+`]}`)
		result, err := f.Call(t.Context(), f.host, "h.x", nil)
		require.NoError(t, err)
		require.Regexp(t, "^The result has [0-9]+ bytes, and the limit is 10000 bytes$", result.Cut)
		require.Less(t, size(result.Content), limit+1000, block)
		require.Less(t, len(f.host.all()), limit, block)
	}
}

func TestUnknownContentBlocks(t *testing.T) {
	h, c := newFakeServer(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), c)
	h.respond("tools/call", `"result":{"content":[{"type":"text","text":"first"},{"type":"hologram","depth":3},null,{"text":"x"},`+
		`{"type":"image","data":"!","mimeType":"image/png"},{"type":"image","data":"","mimeType":"image/png"},7,{"type":"text","text":"last"}]}`)
	result, err := f.Call(t.Context(), f.host, "h.x", nil)
	require.NoError(t, err)
	require.Len(t, result.Content, 8)
	texts := strings.Split(textOf(result.Content), "\n")
	require.Equal(t, "first", texts[0])
	require.Contains(t, texts[1], `[a content block of type "hologram" and 29 bytes, which cannot be read: `)
	require.Equal(t, "[a content block of 4 bytes, which cannot be read: it has no type]", texts[2])
	require.Contains(t, texts[3], "it has no type")
	require.Contains(t, texts[4], `type "image" and`)
	require.Empty(t, texts[5], "an image")
	require.Contains(t, texts[6], "1 byte")
	require.Equal(t, "last", texts[7])
	require.Contains(t, f.host.all(), "hologram")
}

// interrupted is a host that runs a function between the user's answer and the call.
type interrupted struct {
	*host
	once   sync.Once
	before func()
}

func (i *interrupted) Update(ctx context.Context, u backend.Update) error {
	if strings.Contains(u.String(), `"in_progress"`) {
		i.once.Do(i.before)
	}
	return i.host.Update(ctx, u)
}

// Clause A30.
func TestToolChangedByReconnect(t *testing.T) {
	a, b := folder(t), folder(t)
	h, c := newFakeServer(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, a, b), c)
	during := &interrupted{host: f.host, before: func() {
		h.respond("tools/list", `"result":{"tools":[{"name":"x","description":"Another.","inputSchema":{"type":"object"}}]}`)
		f.change(open(t, a), c) // it knows a lost root, so it is reconnected
		require.Eventually(t, func() bool { return h.count("initialize") == 2 }, patience, 5*time.Millisecond)
	}}
	_, err := f.Call(t.Context(), during, "h.x", nil)
	require.ErrorContains(t, err, "its server has changed it")
	require.Zero(t, h.count("tools/call"))
	require.Equal(t, 1, f.host.questions())
}

// floodingServer sends requests without end on its stream and never takes an answer.
type floodingServer struct {
	*fakeServer
	questions int
	waiting   atomic.Int64
	asked     chan struct{} // closed once it has asked all
	once      sync.Once
}

func (h *floodingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch body, _ := io.ReadAll(r.Body); {
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range h.questions {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"ping\"}\n\n", i)
		}
		w.(http.Flusher).Flush()
		h.once.Do(func() { close(h.asked) })
		<-r.Context().Done()
	case bytes.Contains(body, []byte(`"id":"q`)):
		h.waiting.Add(1)
		<-r.Context().Done()
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.fakeServer.ServeHTTP(w, r)
	}
}

func TestHTTPServerTakesNoAnswers(t *testing.T) {
	inner, _ := newFakeServer(t)
	h := &floodingServer{fakeServer: inner, questions: 3000, asked: make(chan struct{})}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{SettleMax: 100 * time.Millisecond}))
	f.change(open(t, folder(t)), mcpclient.Config{Name: "h", Transport: mcpclient.HTTP, URL: s.URL})
	_, err := f.list(t.Context())
	require.NoError(t, err)
	<-h.asked
	status := f.state(backend.ServerWaiting)
	require.ErrorContains(t, status.Err, "took no answers within")
	require.Less(t, h.waiting.Load(), int64(1000))
}

func TestListLimit(t *testing.T) {
	h, c := newFakeServer(t)
	h.respond("initialize", strings.Replace(h.replies["initialize"], `"tools":{}`, `"tools":{},"resources":{}`, 1))
	long := strings.Repeat("x", 1000)
	h.respond("tools/list", `"result":{"nextCursor":"again","tools":[{"name":"x","description":"`+long+`","inputSchema":{"type":"object"}}]}`)
	h.respond("resources/list", `"result":{"nextCursor":"again","resources":[{"uri":"x:x","name":"x","description":"`+long+`"}]}`)
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxListBytes: 10_000}))
	f.change(open(t, folder(t)), c)
	listings, err := f.List(t.Context())
	require.NoError(t, err)
	listing := <-listings
	require.NoError(t, listing.Err)
	require.Len(t, listing.Tools, 9)
	require.Len(t, listing.Resources, 9)
	require.Equal(t, []string{
		"The server lists more tools than the first 9, which are used: a list is limited to 1000 entries and 10000 bytes",
		"The server lists more resources than the first 9, which are used: a list is limited to 1000 entries and 10000 bytes",
	}, listing.Cut)
}

// A permission request shows what a server says as text: on one line, in order, and in a block in
// which nothing is Markdown.
//
// Clause A30.
func TestPermissionRequestCannotBeDisguised(t *testing.T) {
	h, c := newFakeServer(t)
	c.Name = "h\u202e\u2028s"
	f := newFixture(t, mcpclient.Options{})
	f.change(open(t, folder(t)), c)
	h.respond("tools/list", `"result":{"tools":[{"name":"x","title":"safe\u009b1m\u202eevil\u2066\u200b\u2028\u0085\u001b[0m",`+
		`"description":"one\n<!-- ![x](http://example.com) \n`+"````\\nclosed?"+` \u202e \u001b[2J","inputSchema":{"type":"object"}}]}`)
	_, err := f.Call(t.Context(), f.host, f.Servers()[0].Prefix+".x", nil)
	require.NoError(t, err)
	var q struct {
		ToolCall struct {
			Title   string
			Content []struct{ Content struct{ Text string } }
		}
	}
	require.NoError(t, json.Unmarshal(f.host.asked[0], &q))
	require.Equal(t, `MCP server "h\u202e\u2028s": "safe\u009b1m\u202eevil\u2066\u200b\u2028\u0085\x1b[0m" (x)`, q.ToolCall.Title)
	require.Equal(t, `According to MCP server "h\u202e\u2028s", this tool makes changes that may destroy data and reaches out to the network.`+"\n\n"+
		"`````\none\n<!-- ![x](http://example.com) \n````\nclosed? \ufffd \ufffd[2J\n`````", q.ToolCall.Content[1].Content.Text)
	require.Equal(t, "It is called without arguments.", q.ToolCall.Content[0].Content.Text)
}

// Neither a server nor its client can push the name of the server out of sight or make it look like
// another.
//
// Clause A30.
func TestPermissionRequestNamesServerFirst(t *testing.T) {
	for name, shown := range map[string]string{
		"db":                      `"db"`,
		"db ":                     `"db "`,
		"d\u200bb":                `"d\u200bb"`,
		"d\u00adb":                `"d\u00adb"`,
		"d\u2062b":                `"d\u2062b"`,
		"db\U000e0041":            `"db\U000e0041"`,
		"db\u3164":                `"db\u3164"`,
		"db\": safe":              `"db\": safe"`,
		strings.Repeat("n", 1000): `"` + strings.Repeat("n", 100) + `…"`,
	} {
		h, c := newFakeServer(t)
		c.Name = name
		f := newFixture(t, mcpclient.Options{})
		f.change(open(t, folder(t)), c)
		h.respond("tools/list", `"result":{"tools":[{"name":"`+strings.Repeat("y", 5000)+`","title":"`+strings.Repeat("x", 5000)+`","inputSchema":{"type":"object"}}]}`)
		tools, err := f.list(t.Context())
		require.NoError(t, err)
		_, err = f.Call(t.Context(), f.host, tools[0].Name, nil)
		require.NoError(t, err)
		var q struct {
			ToolCall struct{ Title string }
			Options  []struct{ Name string }
		}
		require.NoError(t, json.Unmarshal(f.host.asked[0], &q))
		require.Equal(t, "MCP server "+shown+": "+strings.Repeat("x", 100)+"… ("+strings.Repeat("y", 100)+"…)", q.ToolCall.Title)
		for _, o := range q.Options {
			require.Less(t, len(o.Name), 200)
		}
	}
}
