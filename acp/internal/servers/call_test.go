package servers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// kinds returns the kind and status of each update.
func (h *host) kinds() (all []string) {
	for u := range strings.Lines(h.updates.String()) {
		var update struct {
			Update struct{ SessionUpdate, Status, ToolCallID string }
		}
		_ = json.Unmarshal([]byte(u), &update)
		all = append(all, update.Update.SessionUpdate+" "+update.Update.Status)
	}
	return all
}

// Clause A30.
func TestCallAsksForPermission(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	require.Equal(t, `{"a":"<&>"}`, f.call("s.echo", `{"a":"<&>"}`))
	require.Equal(t, []string{"tool_call pending", "tool_call_update in_progress", "tool_call_update completed"}, f.host.kinds())
	require.Equal(t, 1, f.host.questions())
	var asked struct {
		ToolCall struct {
			ToolCallID, Title, Kind string
			RawInput                json.RawMessage
			Content                 []struct{ Content struct{ Text string } }
		}
		Options []struct{ OptionID, Kind string }
	}
	require.NoError(t, json.Unmarshal(f.host.asked[0], &asked))
	require.Contains(t, f.host.updates.String(), asked.ToolCall.ToolCallID)
	require.Equal(t, `MCP server "s": echo`, asked.ToolCall.Title)
	require.JSONEq(t, `{"a":"<&>"}`, string(asked.ToolCall.RawInput))
	require.Equal(t, "other", asked.ToolCall.Kind)
	require.Equal(t, "It is called with:\n\n```json\n{\n  \"a\": \"<&>\"\n}\n```", asked.ToolCall.Content[0].Content.Text)
	require.Len(t, asked.Options, 2)
	f.call("s.echo", "{}")
	require.Equal(t, 2, f.host.questions(), "allowed once is once")
	require.NoError(t, json.Unmarshal(f.host.asked[1], &asked))
	require.Equal(t, "It is called without arguments.", asked.ToolCall.Content[0].Content.Text)
	f.call("s.echo", `{"a":"`+strings.Repeat("x", 10_000)+"\u202e"+"`"+`"}`)
	require.NoError(t, json.Unmarshal(f.host.asked[2], &asked))
	require.Contains(t, asked.ToolCall.Content[0].Content.Text, "```\n\nThe arguments are 10020 bytes long; only the beginning is shown.")
}

func TestKindsOfTools(t *testing.T) {
	h, c := mcptest.NewFake(t)
	f := newFixture(t, mcpclient.Options{}, c)
	h.Offer(`"tools":{"listChanged":true}`)
	var tools []string
	kinds := map[string]string{
		``: "other", `{"title":"x"}`: "other", `{"readOnlyHint":true}`: "read", `{"readOnlyHint":true,"openWorldHint":false}`: "read",
		`{"readOnlyHint":true,"openWorldHint":true}`: "fetch", `{"destructiveHint":false}`: "edit", `{"readOnlyHint":false,"destructiveHint":true}`: "edit",
	}
	var want []string
	for _, annotations := range slices.Sorted(maps.Keys(kinds)) {
		tool := fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}`, len(tools))
		if annotations != "" {
			tool += `,"annotations":` + annotations
		}
		tools, want = append(tools, tool+"}"), append(want, kinds[annotations])
	}
	h.Respond("tools/list", `"result":{"tools":[`+strings.Join(tools, ",")+`]}`)
	for i, kind := range want {
		f.call(fmt.Sprintf("h.t%d", i), "{}")
		require.Contains(t, f.host.lastAsked(), `"kind":"`+kind+`"`, tools[i])
	}
}

// Clause A30.
func TestReject(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	for _, answer := range []string{"reject-once", "cancelled", "unknown"} {
		f.host.answer = answer
		_, err := f.try("s.die", "{}")
		if answer == "cancelled" {
			require.ErrorIs(t, err, backend.ErrCancelled)
		} else {
			require.ErrorIs(t, err, backend.ErrRejected)
		}
	}
	require.Equal(t, "tool_call_update failed", f.host.kinds()[1])
	require.Equal(t, mcp.Ready, f.Servers()[0].State, "it lives")
}

// The action of a call names the server and the tool as they are, and what they are: another server
// of that name, or another tool, is not the same.
//
// Clause R3.
func TestActionOfCall(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	w := roottest.Open(t, folder(t))
	f.change(w, mcptest.Self("s", "sdk"))
	called := func(tool string) permission.Action {
		f.call(tool, "{}")
		return f.host.actions[len(f.host.actions)-1]
	}
	first := called("s.echo")
	require.Equal(t, []string{"s", "echo"}, []string{first.Tool.Server, first.Tool.Name})
	require.False(t, first.Tool.ReadOnly)
	require.False(t, first.Tool.Found)
	require.True(t, called("s.where").Tool.ReadOnly)
	require.Equal(t, first, called("s.echo"))
	f.call("s.change", "{}")
	f.listed("Ignore previous")
	changed := called("s.echo")
	require.NotEqual(t, first.Tool.Config, changed.Tool.Config, "the server made another tool of it")
	f.change(w, mcptest.Self("s", "sdk", "X=y"))
	require.NotContains(t, []string{first.Tool.Config, changed.Tool.Config}, called("s.echo").Tool.Config, "another server of that name")
}

// Clause A30.
func TestToolChangedWhileAsking(t *testing.T) {
	fresh := newFixture(t, mcpclient.Options{})
	fresh.change(roottest.Open(t, folder(t)), mcptest.Self("s", "sdk"))
	once := false
	fresh.host.during = func() {
		if once {
			return
		}
		once = true
		fresh.call("s.change", "{}")
		fresh.listed("Ignore previous")
	}
	_, err := fresh.try("s.echo", "{}")
	require.ErrorContains(t, err, "its server has changed it")
}

func TestResultLimits(t *testing.T) {
	f := newFixture(t, mcpclient.Options{})
	f.Limit(150_000, 1000)
	f.change(roottest.Open(t, folder(t)), mcptest.Self("s", "sdk"))
	result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "s.large"})
	require.NoError(t, err)
	require.Equal(t, "The result is 533410 bytes long; the limit is 150000 bytes", result.Cut)
	require.Len(t, result.Content, 2)
	require.Contains(t, textOf(result.Content), "[truncated: the text is 400000 bytes long; the limit is 150000 bytes]")
	require.Contains(t, textOf(result.Content), "[left out: image of 133")
	require.Less(t, len(textOf(result.Content)), 151_000)
	require.Less(t, len(f.host.updates.String()), 4000)
}

func TestFailedTool(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	result, err := f.Call(t.Context(), f.host, backend.ToolRequest{Name: "s.fail"})
	require.NoError(t, err)
	require.True(t, result.Failed)
	require.Equal(t, "tool_call_update failed", f.host.kinds()[2])
}

func TestCallProgressAndCancel(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := f.Call(ctx, f.host, backend.ToolRequest{Name: "s.slow"})
		failed <- err
	}()
	f.host.updates.WaitFor(t, "1 of 3: first third")
	cancel(backend.ErrCancelled)
	require.ErrorIs(t, <-failed, backend.ErrCancelled)
	f.host.updates.WaitFor(t, "The call was cancelled.")
	require.Eventually(t, func() bool { return f.logs.Count("the call was cancelled") > 0 }, patience, 5*time.Millisecond, "the server was told")
	require.Equal(t, "{}", f.call("s.echo", "{}"), "the server still works")
}

func TestInvalidArguments(t *testing.T) {
	f := newFixture(t, mcpclient.Options{}, mcptest.Self("s", "sdk"))
	for _, bad := range []string{"[]", "1", `"x"`, "null", "{", "{} {}"} {
		_, err := f.try("s.echo", bad)
		require.ErrorContains(t, err, "are not a JSON object", bad)
	}
	require.Empty(t, f.host.updates.String())
	for _, name := range []string{"s", "s.", "s.nothing", ".", "", "x.echo", "s.echo.x"} {
		_, err := f.try(name, "")
		var unknown *mcp.UnknownNameError
		require.ErrorAs(t, err, &unknown, name)
	}
}

// listed waits until the tool list contains text, which takes a notification from the server.
func (f *fixture) listed(text string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		tools, err := mcptest.ListTools(f.t.Context(), f)
		if err != nil {
			return false
		}
		raw, err := json.Marshal(tools)
		return err == nil && strings.Contains(string(raw), text)
	}, patience, 5*time.Millisecond)
}
