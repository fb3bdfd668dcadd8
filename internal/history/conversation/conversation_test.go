package conversation

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// history yields updates, given as JSON.
func history(t *testing.T, updates ...string) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for _, u := range updates {
			parsed, err := sessionstore.ParseUpdate(json.RawMessage(`{"update":` + u + `}`))
			require.NoError(t, err)
			if !yield(parsed, nil) {
				return
			}
		}
	}
}

func said(kind, text string) string {
	quoted, _ := json.Marshal(text)
	return `{"sessionUpdate":"` + kind + `","content":{"type":"text","text":` + string(quoted) + `}}`
}

// A client shows the members whose names are spelled as the protocol does.
func TestOtherNamesAreNotShown(t *testing.T) {
	entries, err := Read(history(t, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text",
		"text":"shown","TEXT":"not shown","Text":"not shown"}}`))
	require.NoError(t, err)
	require.Equal(t, []Entry{{Kind: Answer, Text: "shown"}}, entries)
}

func TestPiecesAndCallsAreJoined(t *testing.T) {
	entries, err := Read(history(t,
		said("user_message_chunk", "Fix it"),
		`{"sessionUpdate":"user_message_chunk","content":{"type":"resource_link","name":"a.go","uri":"file:///a.go"}}`,
		said("agent_thought_chunk", ""), said("agent_thought_chunk", "hm"),
		said("agent_message_chunk", "I am "), said("agent_message_chunk", "on it.\u202e"),
		`{"sessionUpdate":"plan","entries":[{"content":"one","status":"pending"}]}`,
		`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit a.go","name":"str_replace","status":"pending"}`,
		`{"sessionUpdate":"plan","entries":[{"content":"one","status":"completed"}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[
			{"type":"diff","path":"/a.go","oldText":"a\n","newText":"b\n"},
			{"type":"content","content":{"type":"text","text":"done"}}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"2","rawOutput":"out"}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Retrying"},"_meta":{"acp-agent":{"note":true}}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Server lost"},"_meta":{"acp-agent":{"note":true}}}`,
		`{"sessionUpdate":"usage_update","used":1}`, `{"sessionUpdate":"tool_call","title":7}`,
		`{"sessionUpdate":"tool_call","toolCallId":"3","title":"Grep","name":null}`, `{"sessionUpdate":"tool_call_update","toolCallId":"3","name":7}`,
		said("user_message_chunk", "Thanks"),
		`{"sessionUpdate":"plan","entries":[{"content":"two"}]}`,
	))
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{Kind: Prompt, Text: "Fix it", Attachments: []Attachment{{Name: "file:///a.go"}}},
		{Kind: Thought, Text: "hm"},
		{Kind: Answer, Text: "I am on it.\ufffd"},
		{Kind: Plan, Steps: []Step{{"one", "completed"}}},
		{Kind: ToolCall, Call: &Call{Title: "Edit a.go", Name: "str_replace", Status: "completed",
			Texts: []string{"done"}, Diffs: []Diff{{"/a.go", "a\n", "b\n"}}}},
		{Kind: ToolCall, Call: &Call{Texts: []string{"out"}}},
		{Kind: Note, Text: "Retrying"},
		{Kind: Note, Text: "Server lost"},
		{Kind: ToolCall, Call: &Call{Title: "Grep"}},
		{Kind: Prompt, Text: "Thanks"},
		{Kind: Plan, Steps: []Step{{Content: "two"}}},
	}, entries)
}

// Plans with ids change their entries until the next prompt; the summary of a compaction comes
// whole or in pieces.
func TestPlansWithIDsAndCompactions(t *testing.T) {
	entries, err := Read(history(t,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"a","entries":[{"content":"one","status":"pending"}]}}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"b","content":"# Two\u202e"}}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"a","entries":[{"content":"one","status":"completed"}]}}`,
		`{"sessionUpdate":"plan_removed","planId":"a"}`,
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`,
		said("agent_message_chunk", "Meanwhile"),
		`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"so "}}`,
		`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"far"}}`,
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":null}`,
		`{"sessionUpdate":"compaction_update","compactionId":"d","status":"completed","summary":[{"type":"text","text":"all"}]}`,
		`{"sessionUpdate":"compaction_update","compactionId":"e","status":"failed","error":"too long"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Own","summary":"x","plan":1,"error":{}}`,
		said("user_message_chunk", "Next"),
		`{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"a","uri":"file:///plan.md"}}`,
	))
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{Kind: Plan, Steps: []Step{{"one", "completed"}}},
		{Kind: Plan, Text: "# Two\ufffd"},
		{Kind: Compaction, Text: "so far"},
		{Kind: Answer, Text: "Meanwhile"},
		{Kind: Compaction, Text: "all"},
		{Kind: Compaction, Text: "too long"},
		{Kind: ToolCall, Call: &Call{Title: "Own"}},
		{Kind: Prompt, Text: "Next"},
		{Kind: Plan, Text: "file:///plan.md"},
	}, entries)
	var markdown, page strings.Builder
	d := Document{Title: "t", Entries: entries}
	require.NoError(t, WriteMarkdown(&markdown, d))
	require.NoError(t, WriteHTML(&page, d))
	for _, shown := range []string{"so far", "Two", "too long", "Compaction"} {
		require.Contains(t, markdown.String(), shown)
		require.Contains(t, page.String(), shown)
	}
}

// hostile is text that would do something where it is not only shown.
const hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> \x1b[31m </details> [x](javascript:alert(1)) " +
	"[y](https://example.org/\"onclick=alert(1)) `<b>`"

func document() Document {
	return Document{Title: hostile, Session: "sess_1", Agent: "proxy <b>", Folders: []string{"/a <b>", "/c"},
		Created: time.Unix(0, 0).UTC(), Updated: time.Unix(1, 0).UTC(),
		Entries: []Entry{
			{Kind: Prompt, Text: hostile, Attachments: []Attachment{
				{Name: hostile, Text: hostile}, {Name: hostile},
				{Name: "image", MediaType: "image/png", Data: "iVBORw0KGgo="},
				{Name: "image", MediaType: "image/svg+xml", Data: "PHN2Zy8+"},
				{Name: "image", MediaType: "image/png", Data: `"onload=`},
			}},
			{Kind: Answer, Text: "# Head\n\n- **one** `x`\n- two\n\n```go\nif a < b {\n\n}\n```\n> quoted\n---\n| a | b\\|c |\n|--|:-:|\n| 1 | **2** | 3 |\n\n| no | table |\n\n" +
				"see [it](https://example.org/x)\nand *on*"},
			{Kind: Thought, Text: hostile}, {Kind: Note, Text: hostile},
			{Kind: ToolCall, Call: &Call{Title: hostile, Status: `failed" onclick="x`, Texts: []string{hostile, "```\n" + hostile + "\n```"},
				Diffs: []Diff{{"<b>", "same\n<i>\n", "same\n<u>\n"}}}},
			{Kind: ToolCall, Call: &Call{Title: "Read", Status: "completed"}},
			{Kind: Plan, Steps: []Step{{hostile, `x" onclick="y`}, {"done", "completed"}}},
		}}
}

func TestHTMLShowsTextAsText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteHTML(&b, document()))
	page := b.String()
	for _, active := range []string{"<script", "<img src=x", "<b>", "<i>", "<u>", "svg", `onload=`, ` onclick="`,
		`href="javascript`} {
		require.NotContains(t, page, active)
	}
	require.Contains(t, page, `<img src="data:image/png;base64,iVBORw0KGgo=" alt="Attached image image">`)
	for _, shown := range []string{
		"<h3>Head</h3>", `<ul dir="auto"><li><strong>one</strong> <code>x</code></li><li>two</li></ul>`,
		"<pre>if a &lt; b {\n\n}</pre>", "<blockquote>quoted</blockquote>", "<hr>",
		`<tr><th dir="auto">a</th><th class="middle" dir="auto">b|c</th></tr>`, `<tr><td dir="auto">1</td><td class="middle" dir="auto"><strong>2</strong></td></tr></tbody></table>`, "<p>| no | table |</p>",
		`<p>see <a href="https://example.org/x" rel="noopener noreferrer">it</a>` + "\nand <em>on</em></p>",
		"<del>-&lt;i&gt;\n</del><ins>+&lt;u&gt;\n</ins>", `<li class="completed"><span class="mark" aria-hidden="true">✓</span>done<span class="hidden"> (completed)</span></li>`,
		`<span class="added"> +1</span><span class="removed"> −1</span>`,
		"<dt>Folder 1</dt><dd><code>/c</code></dd>", `<p class="call completed"><span class="mark" aria-hidden="true">✓</span><span class="title">Read</span>`,
	} {
		require.Contains(t, page, shown)
	}
}

func TestLists(t *testing.T) {
	for message, want := range map[string]string{
		"- a\n   - b\n - c":               `<ul dir="auto"><li>a<ul dir="auto"><li>b</li></ul></li><li>c</li></ul>`,
		"- a\n  - b\n    continued\n- c":  `<ul dir="auto"><li>a<ul dir="auto"><li>b` + "\n" + `continued</li></ul></li><li>c</li></ul>`,
		"3. a\n\n4) b\n   * c":            `<ol start="3" dir="auto"><li>a</li><li>b<ul dir="auto"><li>c</li></ul></li></ol>`,
		"- [ ] a\n- [x] ~~b~~":            `<ul dir="auto"><li class="task">☐ a</li><li class="task">☑ <del>b</del></li></ul>`,
		"in the year\n1986. Good":         "<p>in the year\n1986. Good</p>",
		"so:\n1. a\n- b":                  `<p>so:</p><ol start="1" dir="auto"><li>a</li></ol><ul dir="auto"><li>b</li></ul>`,
		"|a|b|c|\n|:--|--:|:-:|\n|1|2|3|": `<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead><tr><th dir="auto">a</th><th class="end" dir="auto">b</th><th class="middle" dir="auto">c</th></tr></thead><tbody><tr><td dir="auto">1</td><td class="end" dir="auto">2</td><td class="middle" dir="auto">3</td></tr></tbody></table></div>`,
	} {
		var b strings.Builder
		h := htmlWriter{bufio.NewWriter(&b)}
		for _, n := range blocks(message) {
			h.node(n)
		}
		require.NoError(t, h.Flush())
		require.Equal(t, want, b.String(), "%q", message)
	}
	deep := strings.Builder{}
	for i := range 2000 {
		deep.WriteString(strings.Repeat(" ", i) + "- x\n")
	}
	require.Less(t, strings.Count(fmt.Sprint(blocks(deep.String())), "ul"), 2000)
}

// A turn that failed is told apart from other notes, with the words of the agent.
func TestFailures(t *testing.T) {
	r := NewReader()
	r.Add(sessionstore.TurnEnded("", "429 (slow down)"))
	require.Equal(t, []Node{element("section", "failure", element("h2", "", words("The turn failed")),
		element("pre", "", words("429 (slow down)")))}, Nodes(r.Entries(), 0))
}

// What a command printed keeps its white space, and is not read as Markdown.
func TestResultsAreShownAsTheyWere(t *testing.T) {
	for name, call := range map[string]Call{
		"text":   {Texts: []string{"# a\n    * b\n"}},
		"block":  {Texts: []string{"```console\n# a\n    * b\n```\n"}},
		"output": {Output: "# a\n    * b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Document{Entries: []Entry{{Kind: ToolCall, Call: &call}}}
			var page, markdown strings.Builder
			require.NoError(t, WriteHTML(&page, d))
			require.Contains(t, page.String(), `<pre class="result">`+"# a\n    * b</pre>")
			require.NoError(t, WriteMarkdown(&markdown, d))
			require.Contains(t, markdown.String(), "\n# a\n    * b\n```")
		})
	}
}

func TestTablesEndWhereTextBegins(t *testing.T) {
	for message, want := range map[string]string{
		"a | b\n--|--\n1 | 2 | 3\n4\n\ntext": "table2 p",
		"text\n| a |\n|---|\n| 1 |\n- item":  "p table1 ul",
		"| a | b |\n|---|\n| 1 |":            "p",
		"| a |\n\n|---|":                     "p p",
		"```\n| a |\n|---|\n```":             "pre",
		"|---|\n|---|":                       "table0",
	} {
		var got []string
		for _, b := range blocks(message) {
			if b.Tag == "div" { // around a table
				b.Tag = "table" + strconv.Itoa(len(b.Children[0].Children[1].Children))
			}
			got = append(got, b.Tag)
		}
		require.Equal(t, want, strings.Join(got, " "), "%q", message)
	}
}

func TestMarkdownShowsTextAsText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteMarkdown(&b, document()))
	text := b.String()
	require.Contains(t, text, "# \\<script\\>alert(1)\\</script\\> ")
	require.Contains(t, text, "- Folder 1: `/c`\n")
	require.Contains(t, text, "\n## Agent\n\n# Head\n")
	require.Contains(t, text, "```diff\n@@ -1,2 +1,2 @@\n same\n-<i>\n+<u>\n```\n")
	require.Contains(t, text, "\n- ✓ Read\n")
	require.Contains(t, text, "- [x] done\n")
	require.Contains(t, text, "<details><summary>· &lt;script&gt;alert(1)&lt;/script&gt; ")
	require.Contains(t, text, "\n\n\\<script>alert(1)")
}

// A message cannot hide what follows it, and loads nothing.
func TestMarkdownMessagesAreInert(t *testing.T) {
	for message, want := range map[string]string{
		"\na **b** > c\n\n":                 "a **b** > c",
		"Vec<T> and `Vec<T>`":               "Vec\\<T> and `Vec<T>`",
		"``a`<b>`` <b> `<i>":                "``a`<b>`` \\<b> `\\<i>",
		"`a``b` <i>":                        "`a``b` \\<i>",
		"<!-- a\n```\n<b>\n```\n</details>": "\\<!-- a\n```\n<b>\n```\n\\</details>",
		"![x](https://e/x.png) wow!":        "\\![x](https://e/x.png) wow!",
		"`![x](y)` \\![x](y) \\`<b>\\":      "`![x](y)` \\![x](y) \\`\\<b>\\",
		"see:\n````go\n```\n<b>":            "see:\n````go\n```\n<b>\n````",
		"1. a\n\n    <b>":                   "1. a\n\n    <b>",
	} {
		require.Equal(t, want, inert(message), "%q", message)
	}
}

func TestPageOnlyAllowsItsOwnStyle(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteHTML(&b, Document{}))
	_, rest, _ := strings.Cut(b.String(), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	require.Equal(t, Style, style)
	hash := sha256.Sum256([]byte(style))
	require.Contains(t, b.String(), "default-src 'none'; img-src data:; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(hash[:])+"'")
	require.True(t, strings.HasPrefix(b.String(), "<!DOCTYPE html>"))
}

// A prompt whose turn failed is not the beginning of the next one, and what happened is told.
func TestEndsOfTurns(t *testing.T) {
	r := NewReader()
	prompt := func(words string) sessionstore.Update {
		return sessionstore.StoredUpdate([]byte(
			`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"` + words + `"}}}`))
	}
	for _, u := range []sessionstore.Update{
		prompt("one"), sessionstore.TurnEnded("", "429"), prompt("two"), sessionstore.TurnEnded("end_turn", ""), prompt("three"),
	} {
		r.Add(u)
	}
	var all []string
	for _, e := range r.Entries() {
		all = append(all, fmt.Sprint(e.Kind, ": ", strings.TrimSpace(e.Text)))
	}
	require.Equal(t, []string{"prompt: one", "note: (The turn failed: 429)", "prompt: two", "prompt: three"}, all)
}

// withFamily yields updates, each of a subagent whose key is before it, or of the session.
func withFamily(t *testing.T, updates ...[2]string) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for _, u := range updates {
			parsed, err := sessionstore.ParseUpdate(json.RawMessage(`{"update":` + u[1] + `}`))
			require.NoError(t, err)
			if u[0] != "" {
				parsed = sessionstore.OfSubagent(u[0], parsed)
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
