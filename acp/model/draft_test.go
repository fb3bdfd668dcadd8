package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func TestPartialStrings(t *testing.T) {
	const whole = ` {"path": "a\"b", "n": [1, {"x": "}"}], "content": "one\ntwo \u00e9 \ud83d\ude00 end"}`
	before := ""
	for end := range len(whole) {
		known := partialStrings(whole[:end])
		require.Contains(t, []string{"", `a"b`}, known["path"], "only if it is complete")
		require.True(t, strings.HasPrefix("one\ntwo é 😀 end", known["content"]), known["content"])
		require.GreaterOrEqual(t, len(known["content"]), len(before))
		before = known["content"]
	}
	require.Equal(t, map[string]string{"path": `a"b`, "content": "one\ntwo é 😀 end"}, partialStrings(whole))
	for _, broken := range []string{"", "[", "null", `{"path"`, `{"path":`, `{"path" 1`, `{1:2}`, `{"a":}`} {
		require.Empty(t, partialStrings(broken), broken)
	}
}

// chatServer streams the pieces of a tool call's arguments, each once the test asks for it.
func chatServer(t *testing.T, tool string, pieces <-chan string) *httptest.Server {
	first := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		chunk := func(delta any, finish string) {
			data, _ := json.Marshal(map[string]any{"choices": []any{
				map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
			fmt.Fprintf(w, "data: %s\n\n", data)
			w.(http.Flusher).Flush()
		}
		if !first {
			chunk(map[string]any{"content": "Done."}, "stop")
			return
		}
		first = false
		call := func(name, arguments string) any {
			f := map[string]any{"arguments": arguments}
			if name != "" {
				f["name"] = name
			}
			return map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "c1", "function": f}}}
		}
		chunk(call(tool, ""), "")
		for piece := range pieces {
			chunk(call("", piece), "")
		}
		chunk(map[string]any{}, "tool_calls")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// A call is shown as soon as its name is known, then its path, and its text while it grows, but not
// each of its pieces.
func TestCallIsShownWhileItArrives(t *testing.T) {
	root, pieces := dirtest.New(t), make(chan string)
	server := chatServer(t, "write_file", pieces)
	e := open(t, setup{roots: []string{root}, model: func(m *Model) { m.BaseURL = server.URL }})
	e.answer(allowOnce)
	send := sync.OnceFunc(func() {
		go func() {
			pieces <- `{"path":"a`
			pieces <- `.txt","content":"one`
			for range 1000 {
				pieces <- "\\nmore"
			}
			pieces <- `"}`
			close(pieces)
		}()
	})
	e.onUpdate = func(u update) {
		if u.Kind == "tool_call" {
			send()
		}
	}
	r := e.send(sdk.TextBlock("Write."))
	require.Len(t, r.of("tool_call"), 1)
	require.Equal(t, "Write a file", r.of("tool_call")[0].Title)
	updates := r.of("tool_call_update")
	require.Equal(t, "Write a.txt", updates[0].Title)
	require.Contains(t, string(updates[0].Content), `"newText":"one"`)
	require.Empty(t, updates[0].Meta.Agent)
	require.Less(t, len(updates), 50)
	require.Equal(t, "one"+strings.Repeat("\nmore", 1000), read(t, filepath.Join(root, "a.txt")))
	calls := r.calls()
	require.Len(t, calls, 1)
	require.Equal(t, sdk.ToolCallStatusCompleted, calls[0].Status)

	replayed := reply{updates: e.restart()}
	require.Len(t, replayed.calls(), 1)
	require.NotEmpty(t, replayed.calls()[0].RawInput)
}

// So is a call of an MCP server's tool.
func TestServerCallIsShownWhileItArrives(t *testing.T) {
	pieces := make(chan string)
	server := chatServer(t, "played__claim", pieces)
	e := open(t, setup{model: func(m *Model) { m.BaseURL = server.URL },
		servers: []sdk.McpServer{playedServer("played")}})
	e.answer(allowOnce)
	e.onUpdate = func(u update) {
		if u.Kind == "tool_call" {
			go func() {
				pieces <- `{"n":1}`
				close(pieces)
			}()
		}
	}
	r := e.send(sdk.TextBlock("Claim."))
	require.Len(t, r.of("tool_call"), 1)
	calls := r.calls()
	require.Len(t, calls, 1)
	require.Equal(t, `MCP server "played": claim`, calls[0].Title)
	require.JSONEq(t, `{"n":1}`, string(calls[0].RawInput))
	require.Equal(t, sdk.ToolCallStatusCompleted, calls[0].Status)
}

// A call that the model does not complete is shown as failed, and is no part of the conversation.
func TestCallThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	root := dirtest.New(t)
	e := open(t, setup{roots: []string{root}})
	silent := modelserver.Write("a.txt", "one").Failing(modelserver.Fault{Events: 2, Then: "silence"})
	e.cancelAfter(func(u update) bool { return u.Kind == "tool_call" })
	r := e.prompt("Write.", silent)
	require.Equal(t, sdk.StopReasonCancelled, r.stop)
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	require.Contains(t, string(r.calls()[0].Content), "did not complete the call")
	e.goOn()
	require.Empty(t, e.results())
}

// A call that fails before the user is asked shows why, without the part of its text that was shown
// while it arrived.
func TestPartsOfCallsThatFailAreNotKept(t *testing.T) {
	pieces := make(chan string)
	server := chatServer(t, "write_file", pieces)
	e := open(t, setup{roots: []string{dirtest.New(t)}, model: func(m *Model) { m.BaseURL = server.URL }})
	part := make(chan struct{})
	shown := sync.OnceFunc(func() { close(part) })
	e.onUpdate = func(u update) {
		switch {
		case u.Kind == "tool_call":
			go func() {
				pieces <- `{"path":"a.txt","if_version":"another","content":"first line\n`
				<-part
				pieces <- strings.Repeat("more", 10<<10) + `"}`
				close(pieces)
			}()
		case strings.Contains(string(u.Content), "first line"):
			shown()
		}
	}
	calls := e.send(sdk.TextBlock("Write.")).calls()
	require.Len(t, calls, 1)
	require.Equal(t, sdk.ToolCallStatusFailed, calls[0].Status)
	require.NotContains(t, string(calls[0].Content), "first line")
}

// Calls of an answer that the model then refuses to give do not happen.
func TestCallsBeforeARefusal(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}})
	r := e.prompt("Read.", modelserver.Together(modelserver.Read("a.txt"), modelserver.Read("a.txt")).
		Ending("refusal"))
	require.Equal(t, sdk.StopReasonRefusal, r.stop)
	for _, call := range r.calls() {
		require.Equal(t, sdk.ToolCallStatusFailed, call.Status)
	}
}
