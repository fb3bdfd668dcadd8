package mcpclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// Servers that behave badly, but can be used.
func TestBadManners(t *testing.T) {
	for role, c := range map[string]struct{ answer, logs string }{
		"garbage":     {"0", "Welcome to the server!"},
		"flood":       {"after the flood", ""},
		"thousand":    {"", "1000 answers"}, // some of them come after its own
		"early":       {"1", ""},            // it asks before it is initialized, and is answered
		"no discover": {"0", ""},
	} {
		t.Run(role, func(t *testing.T) {
			f := serving(t, mcpclient.Options{}, mcptest.Self("s", role))
			require.Contains(t, f.call("s.count", ""), c.answer)
			f.logs.WaitFor(t, c.logs)
			require.Equal(t, "2025-11-25", f.Servers()[0].Revision)
		})
	}
}

func TestSilentServer(t *testing.T) {
	f := serving(t, mcpclient.Options{Wait: 300 * time.Millisecond}.With(mcpclient.Limits{StartTimeout: 300 * time.Millisecond, MaxRestarts: 1}), mcptest.Self("s", "silent"))
	require.ErrorContains(t, f.failed().Err, "has not answered initialize within 300ms")
}

func TestRestartAfterCrash(t *testing.T) {
	f := serving(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	_, err := f.try("s.die", "")
	require.ErrorContains(t, err, "MCP server s: it ended during the call")
	require.NotZero(t, f.where("s").PID, "started again")
	require.Equal(t, 1, f.Servers()[0].Restarts)
	require.Contains(t, f.logs.String(), "exit status 4")
	require.Contains(t, f.logs.String(), "out of memory")
}

// Clause A25.
func TestRestartOfWhatIsNoLongerAllowed(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	server, ws := mcptest.Self("s", "sdk"), roottest.Open(t, folder(t))
	var changed atomic.Bool
	server.Consent, server.Check = "first", func(w *workspace.Workspace) error {
		require.Same(t, ws, w)
		if changed.Load() {
			return errors.New("the script is another one")
		}
		return nil
	}
	f.change(ws, server)
	require.NotZero(t, f.where("s").PID)
	changed.Store(true)
	_, err := f.try("s.die", "")
	require.ErrorContains(t, err, "it ended during the call")
	status := f.state(acpmcp.Failed)
	require.ErrorContains(t, status.Err, "it was not started: the script is another one")
	require.Equal(t, 1, status.Restarts, "attempted, once")

	f.change(ws, server)
	require.Equal(t, acpmcp.Failed, f.Servers()[0].State, "the same consent")
	server.Consent, server.Check = "second", nil
	f.change(ws, server)
	require.NotZero(t, f.where("s").PID)
}

func TestGiveUpAfterRestarts(t *testing.T) {
	f := serving(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 2, Backoff: time.Millisecond}), mcptest.Self("s", "exit"))
	_, err := f.try("s.x", "")
	require.ErrorContains(t, err, "exit status 3")
	require.Equal(t, 2, f.state(acpmcp.Failed).Restarts)
}

func TestLineTooLong(t *testing.T) {
	f := serving(t, mcpclient.Options{}.With(mcpclient.Limits{MaxMessage: 1 << 20}), mcptest.Self("s", "long line"))
	_, err := f.try("s.count", "")
	require.EqualError(t, err, "MCP server s: it sent a message of more than 1 MiB, which is the limit")
	require.Eventually(t, func() bool { return f.logs.Count("more than 1 MiB") > 0 }, patience, 5*time.Millisecond)

	h, c := mcptest.NewFake(t)
	f.change(roottest.Open(t, folder(t)), c)
	h.Respond("tools/call", `"result":{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`)
	_, err = f.try("h.x", "")
	require.EqualError(t, err, "MCP server h: it sent a message of more than 1 MiB, which is the limit")
}

func TestUnreadableAnswer(t *testing.T) {
	f := serving(t, mcpclient.Options{}, mcptest.Self("s", "null answers"))
	_, err := f.try("s.count", "")
	require.Error(t, err)
	tools, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	require.Len(t, tools, 3, "the connection still works")
}

// Clause W9.
func TestStubbornServer(t *testing.T) {
	h := proctest.Watch(t)
	f := serving(t, mcpclient.Options{}, mcptest.Self("s", "stubborn", h.Env()))
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		_, _ = mcptest.ListTools(context.Background(), f)
	}()
	stubborn := h.Next()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, f.Close(ctx))
	stubborn.Ended()
	<-listed
}

// floodingServer sends requests without end on its stream and never takes an answer.
type floodingServer struct {
	*mcptest.Fake
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
		h.Fake.ServeHTTP(w, r)
	}
}

func TestHTTPServerTakesNoAnswers(t *testing.T) {
	inner, _ := mcptest.NewFake(t)
	h := &floodingServer{Fake: inner, questions: 3000, asked: make(chan struct{})}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	f := serving(t, mcpclient.Options{}.With(mcpclient.Limits{SettleMax: 100 * time.Millisecond}), mcpclient.Config{Name: "h", Transport: acpmcp.HTTP, URL: s.URL})
	_, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	<-h.asked
	status := f.state(acpmcp.Waiting)
	require.ErrorContains(t, status.Err, "read no answers within")
	require.Less(t, h.waiting.Load(), int64(h.questions))
}

func TestListLimit(t *testing.T) {
	h, c := mcptest.NewFake(t)
	h.Offer(`"tools":{},"resources":{}`)
	long := strings.Repeat("x", 1000)
	var tools, resources []string
	for i := range 20 {
		tools = append(tools, fmt.Sprintf(`{"name":"x%02d","description":"%s","inputSchema":{"type":"object"}}`, i, long))
		resources = append(resources, fmt.Sprintf(`{"uri":"x:x%02d","name":"x","description":"%s"}`, i, long))
	}
	h.Respond("tools/list", `"result":{"tools":[`+strings.Join(tools, ",")+`]}`)
	h.Respond("resources/list", `"result":{"resources":[`+strings.Join(resources, ",")+`]}`)
	f := serving(t, mcpclient.Options{}.With(mcpclient.Limits{MaxListBytes: 10_000}), c)
	listing := f.listing()
	require.Len(t, listing.Tools, 9)
	require.Len(t, listing.Resources, 9)
	require.Equal(t, []string{
		"The server lists more tools than the first 9, which are used: a list is limited to 1000 entries and 10000 bytes",
		"The server lists more resources than the first 9, which are used: a list is limited to 1000 entries and 10000 bytes",
	}, listing.Cut)
}

// A server that ignores cursors gives the same page for ever.
func TestRepeatedCursorEndsList(t *testing.T) {
	h, c := mcptest.NewFake(t)
	h.Offer(`"tools":{},"resources":{}`)
	h.Respond("tools/list", `"result":{"nextCursor":"again","tools":[{"name":"x","inputSchema":{"type":"object"}}]}`)
	h.Respond("resources/list", `"result":{"nextCursor":"again","resources":[{"uri":"x:x","name":"x"}]}`)
	f := serving(t, mcpclient.Options{}, c)
	listing := f.listing()
	require.Len(t, listing.Tools, 1)
	require.Len(t, listing.Resources, 1)
	require.Empty(t, listing.Cut)
	require.LessOrEqual(t, h.Count("tools/list"), 3)
	require.Contains(t, f.logs.String(), "lists the same items again and again")
}
