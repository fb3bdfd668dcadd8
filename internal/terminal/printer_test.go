package terminal

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
)

var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"## A *title* ##":            "<1;4>A title<0>",
		"a **bold** and *thin* word": "a <1>bold<0> and <3>thin<0> word",
		"- item `x*y*`":              "• item <36>x*y*<0>",
		"  1. item":                  "  1. item",
		"> said":                     "<2>│ <0>said",
		"---":                        "<2>" + strings.Repeat("─", 20) + "<0>",
		"[text](http://x)":           "<4>text<0> (http://x)",
		"2 * 3 * 4, snake_case_name": "2 * 3 * 4, snake_case_name",
		`\*not\*`:                    "*not*",
		"~~~~go\n# a\n~~~\n~~~~\nb":  "  <36># a<0>\n  <36>~~~<0>\nb",
		"```\n**x**":                 "  <36>**x**<0>",
		"| a | b |":                  "| a | b |",
		"`` a`b `` and `c`":          "<36>a`b<0> and <36>c<0>",
		"**unfinished":               "**unfinished",
		"":                           "",
		"one\n\ntwo":                 "one\n\ntwo",
	} {
		for _, size := range []int{1, 3, len(source)} {
			var m markdown
			var got strings.Builder
			for rest := source; rest != ""; {
				n := min(size, len(rest))
				got.WriteString(m.add(rest[:n]))
				rest = rest[n:]
			}
			got.WriteString(m.rest())
			shown := escape.ReplaceAllString(got.String(), "<$1>")
			require.Equal(t, want, strings.TrimSuffix(shown, "\n"), "%q", source)
		}
	}
}

func TestRetriesAndThoughts(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	show(t, p, "agent_thought_chunk", `{"content":{"type":"text","text":"I think"}}`,
		`{"content":{"type":"text","text":"Busy. Trying again in 2s.\n\n"},"_meta":{"acp-agent":{"note":true}}}`)
	require.Equal(t, "· Busy. Trying again in 2s.\n", out.String())
}

func TestNoticesAndCompactions(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	for _, u := range [][2]string{
		{"agent_message_chunk", `{"content":{"type":"text","text":"so"}}`},
		{"notice", `{"severity":"warning","title":"Rate\u001b[2J limited","description":"Wait.\n\nThen go on."}`},
		{"notice", `{"severity":"info","title":"no more","description":null}`},
		{"notice", `{"severity":"info","title":"cut …","description":"cut here"}`},
		{"notice", `{"title":7}`},
		{"compaction_update", `{"compactionId":"c","status":"in_progress"}`},
		{"compaction_update", `{"compactionId":"c","status":"completed"}`},
		{"compaction_update", `{"compactionId":"d","status":"failed","error":"too long"}`},
	} {
		p.Update(t.Context(), client.Update{Kind: u[0], Update: json.RawMessage(u[1])})
	}
	require.Equal(t, "so\n! Rate [2J limited\n  Wait.\n  Then go on.\n! no more\n! cut here\n"+
		"· the agent summarized the conversation so far\n"+
		"· the agent could not summarize the conversation: too long\n", out.String())
}

func TestDescribe(t *testing.T) {
	for raw, want := range map[string]string{
		`{"details":"the model is busy"}`:                       "the model is busy",
		`{"error":{"code":429,"message":"slow down"},"x":null}`: "slow down",
		`"text"`:        "text",
		`null`:          "",
		`{}`:            "",
		`["a b","c d"]`: "a b; c d",
		``:              "",
	} {
		require.Equal(t, want, Sentences(json.RawMessage(raw)), raw)
	}
}

// Text of the agent could pass for another question.
func TestUpdatesWaitForTheAnswer(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	title := "Write f"
	p.Permission(sdk.ToolCallUpdate{Title: &title})
	show(t, p, "agent_message_chunk", `{"content":{"type":"text","text":"? Read g"}}`)
	p.Ask("[y] Allow:")
	require.NotContains(t, out.String(), "Read g")
	p.Answered("Allow")
	require.Contains(t, out.String(), "(Allow)\n? Read g")
}

func TestLongLinesAreNotRendered(t *testing.T) {
	var m markdown
	long := strings.Repeat("__a *b* ", 200_000)
	require.Equal(t, long+"\n", m.add(long)+m.add("\n")+m.rest())
}

func TestWrappedLinesOfQuestions(t *testing.T) {
	var out strings.Builder
	p := onTerminal(&out, 30)
	title := strings.Repeat("x", 40)
	p.Permission(sdk.ToolCallUpdate{Title: &title})
	require.Equal(t, "? "+title[:27]+"\n  "+title[27:]+"\n", out.String())
}

// A message begins on a new line, and is no code because of the message before.
func TestMessagesAreSeparate(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	p.page.markdown = &markdown{}
	for _, u := range []client.Update{
		{Kind: "agent_message_chunk", Update: json.RawMessage(`{"content":{"text":"I "}}`)},
		{Kind: "agent_thought_chunk", Update: json.RawMessage(`{"content":{"text":""}}`)},
		{Kind: "agent_message_chunk", Update: json.RawMessage(`{"content":{"text":"look."}}`)},
		{Kind: "agent_thought_chunk", Update: json.RawMessage(`{"content":{"text":"hm"}}`)},
		{Kind: "agent_message_chunk", Update: json.RawMessage(`{"content":{"text":"Here:\n~~~\nx\n"},"messageId":"1"}`)},
		{Kind: "agent_message_chunk", Update: json.RawMessage(`{"content":{"text":"*Done*"},"messageId":"2"}`)},
	} {
		p.Update(t.Context(), u)
	}
	p.End()
	require.Equal(t, "I look.\nHere:\n  <36>x<0>\n<3>Done<0>\n", escape.ReplaceAllString(out.String(), "<$1>"))
}

// Tabs would move what follows to a place that only the terminal knows.
func TestTabsInQuestionsAndProgress(t *testing.T) {
	var out strings.Builder
	p := onTerminal(&out, 30)
	title := "Edit"
	p.Permission(sdk.ToolCallUpdate{Title: &title, Content: []sdk.ToolCallContent{
		sdk.ToolDiffContent("f", strings.Repeat("\t", 6)+"? Read"),
	}})
	require.Contains(t, out.String(), "\n  +"+strings.Repeat(" ", 24)+"? \n  Read\n")
	out.Reset()
	p.asking = false
	show(t, p, "tool_call", `{"toolCallId":"1","title":"Test","content":[{"content":{"text":"ok\tpackage\t0.1s"}}]}`)
	require.Equal(t, "· Test  ok package 0.1s", out.String())
}

// The title of a call may grow until the call begins.
func TestPrinterShowsTheLastTitleOfPendingCalls(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	show(t, p, "tool_call",
		`{"toolCallId":"1","title":"Edit","status":"pending"}`,
		`{"toolCallId":"2","title":"Read","status":"pending"}`,
		`{"toolCallId":"1","title":"Edit a.txt"}`,
		`{"toolCallId":"2","title":"Read b.txt","status":"failed"}`,
		`{"toolCallId":"1","status":"completed"}`,
		`{"toolCallId":"3","title":"Search"}`)
	p.End()
	require.Equal(t, "· failed: Read b.txt\n· Edit a.txt\n· Search\n", out.String())
}

// onTerminal returns a printer for a terminal without styles.
func onTerminal(out io.Writer, width int) *Printer {
	p := NewPrinter(out)
	p.page.width = width
	return p
}

func show(t *testing.T, p *Printer, kind string, updates ...string) {
	for _, raw := range updates {
		p.Update(t.Context(), client.Update{Kind: kind, Update: json.RawMessage(raw)})
	}
}

func TestWordsAreWrapped(t *testing.T) {
	for source, want := range map[string]string{
		"one two three four five":          "one two three\nfour five",
		"- one two three four five":        "• one two three\n  four five",
		"  one two three four five":        "  one two three\n  four five",
		"> one two three four five":        "<2>│ <0>one two three\n<2>│ <0>four five",
		"one **two three** four five":      "one <1>two three<0>\nfour five",
		"| one | two | three | four | b |": "| one | two | three | four | b |",
		"```\none two three four five six": "  <36>one two three four five six<0>",
		"http://host/one/two/three/four x": "http://host/one/two/three/four\nx",
		"日本語 日本語 日本語 日本語":                  "日本語 日本語\n日本語 日本語",
	} {
		m := markdown{width: 16}
		shown := escape.ReplaceAllString(m.add(source)+m.rest(), "<$1>")
		require.Equal(t, want+"\n", shown)
	}
	m := markdown{width: 16, plain: true}
	require.Equal(t, "- **one** two\n  three four\n```\none two three four five\n```\n> one two three\n> four\n",
		m.add("- **one** two three four\n```\none two three four five\n```\n> one two three four\n"))
}

func TestPlans(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(&out)
	entry := func(content, status string) string {
		return `{"content":"` + content + `","priority":"high","status":"` + status + `"}`
	}
	plan := func(entries ...string) string { return `{"entries":[` + strings.Join(entries, ",") + `]}` }
	first := plan(entry("Read", "in_progress"), entry("Fi\\u001b[2Jx", "pending"))
	show(t, p, "plan", first, first, `{"entries":7}`,
		plan(entry("Read", "completed"), entry("Fi\\u001b[2Jx", "in_progress")), plan(entry("Test", "pending")))
	require.Equal(t, "Plan:\n  → Read\n  ○ Fi\ufffd[2Jx\n  ✓ Read\n  → Fi\ufffd[2Jx\nPlan:\n  ○ Test\n", out.String())
}

func TestOutputOfCommands(t *testing.T) {
	for width, want := range map[int]string{
		0:  "· `make`\n  … (2 lines above)\n",
		40: "· `make`\r\x1b[K✓ `make`\n  … (2 lines above)\n",
	} {
		var out strings.Builder
		p := onTerminal(&out, width)
		show(t, p, "tool_call",
			`{"toolCallId":"1","title":"`+"`make`"+`","kind":"execute","status":"in_progress"}`)
		show(t, p, "tool_call_update", `{"toolCallId":"1","status":"completed","content":[{"content":{"text":"`+
			"```sh\\n"+strings.Repeat(`  \ta\u001b[2J\n\n`, 12)+"```"+`"}}]}`)
		show(t, p, "tool_call", `{"toolCallId":"2","title":"Read","kind":"read","status":"completed",`+
			`"content":[{"content":{"text":"content"}}]}`)
		require.True(t, strings.HasPrefix(out.String(), want+"        a\ufffd[2J\n"), "%q", out.String())
		require.Equal(t, 10, strings.Count(out.String(), "a\ufffd[2J\n"))
		require.NotContains(t, out.String(), "content", "only of commands")
	}
}

// While nothing happens the last line says for how long, and is replaced by what comes next.
func TestWaiting(t *testing.T) {
	var out strings.Builder
	p := onTerminal(&out, 40)
	begin := time.Now()
	p.page.printed = begin
	p.tick(begin.Add(quiet - 1))
	require.Empty(t, out.String())
	p.tick(begin.Add(quiet))
	p.tick(begin.Add(5 * time.Second))
	require.Equal(t, "\r\x1b[K… 3 s\r\x1b[K… 5 s", out.String())
	out.Reset()
	show(t, p, "agent_message_chunk", `{"content":{"text":"Hello"}}`)
	require.Equal(t, "\r\x1b[KHello", out.String())
	p.tick(time.Now().Add(time.Minute))
	require.Equal(t, "\r\x1b[KHello", out.String(), "a line that is not complete stays")

	show(t, p, "tool_call", `{"toolCallId":"1","title":"Test","status":"in_progress"}`)
	out.Reset()
	p.page.printed = begin
	p.tick(begin.Add(4 * time.Second))
	require.Equal(t, "\r\x1b[K· Test  (4 s)", out.String())
	out.Reset()
	show(t, p, "tool_call_update", `{"toolCallId":"1","status":"completed"}`)
	require.Equal(t, "\r\x1b[K✓ Test\n", out.String())

	title := "Write"
	p.Permission(sdk.ToolCallUpdate{Title: &title})
	out.Reset()
	p.tick(time.Now().Add(time.Minute))
	require.Empty(t, out.String(), "the user is thinking")
	p.Answered("Allow")
	p.tick(time.Now().Add(time.Minute))
	out.Reset()
	p.End()
	require.Equal(t, "\r\x1b[K", out.String())
}

// What is written beside the printer erases the line that says how long nothing has happened.
func TestAsideErasesTheWaitingLine(t *testing.T) {
	var out, beside strings.Builder
	p := onTerminal(&out, 80)
	p.page.printed = time.Now()
	p.tick(p.page.printed.Add(quiet))
	require.NotContains(t, out.String(), "npx")
	p.tick(time.Now().Add(11 * time.Second))
	require.Contains(t, out.String(), "s; npx and uvx install an agent first. Ctrl-C stops")
	out.Reset()
	_, err := aside{p, &beside}.Write([]byte("session s\n"))
	require.NoError(t, err)
	require.Equal(t, eraseLine, out.String())
	require.Equal(t, "session s\n", beside.String())
	require.Same(t, &beside, p.Aside(&beside), "only on a terminal")
}
