package conversation

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// withFamily yields updates, each of a child whose key is before it, or of the session.
func withFamily(t *testing.T, updates ...[2]string) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for _, u := range updates {
			parsed, err := sessionstore.ParseUpdate(json.RawMessage(`{"update":` + u[1] + `}`))
			require.NoError(t, err)
			if u[0] != "" {
				parsed = sessionstore.InChild(u[0], parsed)
			}
			if !yield(parsed, nil) {
				return
			}
		}
	}
}

func announced(key, title string) string {
	return `{"sessionUpdate":"subagent_update","sessionId":"` + key + `","title":"` + title + `"}`
}

func tool(kind, id, rest string) string {
	return `{"sessionUpdate":"` + kind + `","toolCallId":"` + id + `",` + rest + `}`
}

var family = [][2]string{
	{"", said("user_message_chunk", "Find it")},
	{"", announced("sub_a", "Finder")},
	{"", said("agent_message_chunk", "I have asked.")},
	{"sub_a", `{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"sub_parent",` +
		`"recipientSessionId":"sub_a","content":[{"type":"text","text":"Look"}]}`},
	{"", `{"sessionUpdate":"session_message","content":[{"type":"text","text":"to nobody"}]}`},
	{"sub_a", said("agent_message_chunk", "I ")},
	{"sub_b", said("agent_message_chunk", "headless")},
	{"sub_a", said("agent_message_chunk", "look.")},
	{"sub_a", tool("tool_call", "t", `"title":"Read","status":"pending"`)},
	{"sub_a", announced("sub_c", "Helper")},
	{"sub_c", said("agent_message_chunk", "found")},
	{"", tool("tool_call", "t", `"title":"Wait","status":"completed"`)},
	{"sub_a", tool("tool_call_update", "t", `"status":"completed"`)},
	{"", announced("sub_a", "Seeker")},
	{"", said("agent_message_chunk", "Done.")},
}

// Clause A36.
func TestSubagentsStandWhereTheyBegan(t *testing.T) {
	entries, err := Read(withFamily(t, family...))
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{Kind: Prompt, Text: "Find it"},
		{Kind: SubagentWork, Subagent: &Subagent{Title: "Seeker", Entries: []Entry{
			{Kind: Prompt, Text: "Look"},
			{Kind: Answer, Text: "I look."},
			{Kind: ToolCall, Call: &Call{Title: "Read", Status: "completed"}},
			{Kind: SubagentWork, Subagent: &Subagent{Title: "Helper",
				Entries: []Entry{{Kind: Answer, Text: "found"}}}},
		}}},
		{Kind: Answer, Text: "I have asked."},
		{Kind: SubagentWork, Subagent: &Subagent{
			Entries: []Entry{{Kind: Answer, Text: "headless"}}}},
		{Kind: ToolCall, Call: &Call{Title: "Wait", Status: "completed"}},
		{Kind: Answer, Text: "Done."},
	}, entries)
	for write, want := range map[string][]string{
		"markdown": {"<details><summary>Subagent: Seeker</summary>\n\n#### Task\n\nLook\n\n" +
			"#### Agent\n\nI look.\n", "<summary>Subagent: Helper</summary>\n\n#### Agent\n\nfound\n"},
		"html": {"<summary>Subagent: Seeker</summary><article class=\"prompt\"><h2>Task</h2>",
			"<summary>Subagent: Helper</summary>"},
	} {
		var b strings.Builder
		if write == "html" {
			require.NoError(t, WriteHTML(&b, Document{Entries: entries}))
		} else {
			require.NoError(t, WriteMarkdown(&b, Document{Entries: entries}))
		}
		for _, part := range want {
			require.Contains(t, b.String(), part)
		}
		require.Equal(t, strings.Count(b.String(), "<details"), strings.Count(b.String(), "</details>"))
	}
}

// A page of a history shows the titles of subagents that were announced before it, and the ends of
// their calls behind it.
func TestSubagentsOfAPart(t *testing.T) {
	r := NewReader()
	add := func(r *Reader, from int) {
		i := 0
		for u := range withFamily(t, family...) {
			switch {
			case i < from:
			case i >= 3 && i < 10:
				r.Add(u)
			default:
				r.Outside(u)
			}
			i++
		}
	}
	add(r, 3)
	require.Equal(t, "Subagent", r.Entries()[0].Subagent.Name())
	require.True(t, r.Headless())
	r = NewReader()
	add(r, 0)
	require.Equal(t, "Finder", r.Entries()[0].Subagent.Name())
	require.Equal(t, "completed", r.Entries()[0].Subagent.Entries[2].Call.Status)
	require.False(t, r.Unfinished())
}
