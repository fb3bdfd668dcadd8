package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// A call is shown, asked for, made, shown again and recorded.
func TestA30_ACallOfAnMCPToolIsAskedForAndRecorded(t *testing.T) {
	c := connect(t, acp.Options{})
	c.permit("allow-always")
	c.initialize()
	a := folder(t)
	one := server("one", "files")
	id := c.serve([]string{a}, one)
	require.Contains(t, c.use(id, "one.where"), a)
	require.Len(t, c.questions(), 1)
	var asked struct {
		SessionID string
		ToolCall  struct{ ToolCallID, Title string }
	}
	require.NoError(t, json.Unmarshal(c.questions()[0].Params, &asked))
	require.Equal(t, id, asked.SessionID)
	require.Equal(t, "where, of MCP server one", asked.ToolCall.Title)
	require.Equal(t, []string{"pending", "in_progress", "completed"}, statuses(c.messages(), asked.ToolCall.ToolCallID))

	c.use(id, "one.where")
	require.Len(t, c.questions(), 1, "always is remembered")
	c.use(id, "one.heard")
	require.Len(t, c.questions(), 2, "for the tool")
	other := c.serve([]string{a}, one)
	c.use(other, "one.where")
	require.Len(t, c.questions(), 3, "and the session")

	c.permit("reject-once")
	require.Contains(t, c.use(id, "one.roots"), "error")
	c.permit("cancelled")
	require.Contains(t, c.use(id, "one.roots"), "error")

	from := len(c.messages())
	c.call("session/load", servedParams(id, []string{a}, one))
	require.Equal(t, []string{"pending", "in_progress", "completed"}, statuses(c.messages()[from:], asked.ToolCall.ToolCallID), "replayed")
	c.permit("")
	from = len(c.questions())
	require.Contains(t, c.use(id, "one.where"), a, "it went on, with what the user allowed")
	require.Len(t, c.questions(), from)
}

// statuses are those that a tool call was shown with.
func statuses(messages []message, toolCall string) (all []string) {
	for _, m := range messages {
		var p struct {
			Update struct{ ToolCallID, Status string }
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil && p.Update.ToolCallID == toolCall {
			all = append(all, p.Update.Status)
		}
	}
	return all
}

// A cancelled turn ends a question that nobody answers, and the call is shown as failed.
func TestW5_ACancelledTurnEndsTheQuestionForATool(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	id := c.serve([]string{folder(t)}, server("one", "files"))
	prompt, line := c.request("session/prompt", promptParams(id, "use one.where"))
	c.send(line)
	_, at := c.await(0, func(m message) bool { return m.Method == "session/request_permission" })
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	c.await(at, func(m message) bool { return m.Method == "$/cancel_request" })
	c.await(at, func(m message) bool { return strings.Contains(string(m.Params), `"failed"`) })
}
