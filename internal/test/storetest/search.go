package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func searchTests() []testCase {
	return []testCase{
		{"searching finds messages", searchFindsMessages},
		{"searching finds streamed messages", searchStreamed},
		{"searching finds the last titles of tool calls", searchTitles},
		{"searching takes any text", searchAnyText},
		{"searching finds writing without spaces", searchWithoutSpaces},
		{"searching compares words without case and accents", searchFolds},
		{"searching finds what a running turn stored", searchRunning},
		{"searching finds forks, drafts and the last passage first", searchForks},
		{"searching returns few messages of a session", searchLimits},
		{"deleted sessions are not found", searchDeleted},
	}
}

// search returns the ids, roles and marked lines of what a text finds.
func search(t *testing.T, s store, text string) []string {
	t.Helper()
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: text})
	require.NoError(t, err)
	all := []string{}
	for _, f := range found {
		line, end := "", 0
		for _, m := range f.Matches {
			line += f.Line[end:m.Start] + "[" + f.Line[m.Start:m.End] + "]"
			end = m.End
		}
		all = append(all, fmt.Sprintf("%s %s: %s", f.Session.ID, f.Role, line+f.Line[end:]))
		require.False(t, f.Time.IsZero())
		require.Contains(t, passages(t, s, f), f.Line[f.Matches[0].Start:f.Matches[0].End])
		require.Equal(t, get(t, s, string(f.Session.ID)).Keys.Roots.String(), f.Session.Keys.Roots.String())
	}
	return all
}

// passages returns the messages of a history from the segment in which one begins.
func passages(t *testing.T, s store, f sessionstore.Found) (all string) {
	t.Helper()
	var p sessionstore.Passages
	first := f.Segment
	for segment, err := range s.Segments(t.Context(), f.Session.ID, first-1) {
		require.NoError(t, err)
		require.Equal(t, first, segment.Number)
		first++
		for u := range sessionstore.Unpack(segment.Body) {
			p.Add(segment.Number, u)
		}
	}
	p.End()
	for _, passage := range p.Done {
		all += passage.Text + "\n"
	}
	return all
}

func toolCall(id, title string) update {
	return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"tool_call","toolCallId":%q,"title":%q}}`, id, title))
}

func searchFindsMessages(t *testing.T, s store) {
	one := Create(t, s, "one")
	record(t, s, one, "Where is the Parser?\nI cannot find it.", text("agent_thought_chunk", "look into src"),
		toolCall("1", "Read parser.go"), say("The café is in parser.go, and\n  the parser has a parser test."))
	two := Create(t, s, "two")
	record(t, s, two, "retry", say("done"))

	require.Equal(t, []string{
		"one agent: the [parser] has a [parser] test.", "one tool: Read [parser].go", "one user: Where is the [Parser]?",
	}, search(t, s, "parser"))
	require.Equal(t, []string{"one user: [Where] is the [Parser]?"}, search(t, s, "parser where"))
	require.Equal(t, []string{"one user: I [cannot] [find] it."}, search(t, s, "find cannot"))
	require.Empty(t, search(t, s, `"find cannot"`))
	require.Equal(t, []string{"one user: I [cannot find] it."}, search(t, s, `"cannot find"`))
	require.Equal(t, []string{"one agent: The [café] is in parser.go, and"}, search(t, s, "CAFE"))
	require.Equal(t, []string{"one thought: [look] into src"}, search(t, s, "loo"), "the beginning of a word")
	require.Empty(t, search(t, s, `"loo"`))
	require.Empty(t, search(t, s, "parser retry"), "of two sessions")
	require.Equal(t, []string{"two user: [retry]"}, search(t, s, "retry"))
}

func searchStreamed(t *testing.T, s store) {
	l := Create(t, s, "one")
	number := Begin(t, s, l, sessionstore.Turn{Prompt: []update{text("user_message_chunk", "x")}})
	for _, piece := range []string{"con", "cur", "rent ", "writers"} {
		require.NoError(t, s.Append(t.Context(), l, []update{say(piece)}))
	}
	require.NoError(t, s.EndTurn(t.Context(), l, number))
	require.Equal(t, []string{"one agent: [concurrent writers]"}, search(t, s, `"concurrent writers"`))
	record(t, s, l, "y", say(strings.Repeat("word ", 5000)+"concluding"))
	require.Len(t, search(t, s, "concluding"), 1)
}

func searchTitles(t *testing.T, s store) {
	title := func(id, title string) update {
		return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":%q,"title":%q}}`, id, title))
	}
	l := Create(t, s, "one")
	record(t, s, l, "x", toolCall("1", "Edit"), title("1", "Edit pay"), title("1", "Edit payment.go"),
		toolCall("2", "Edit"), toolCall("3", ""), title("2", "Edit order.go"), title("1", "Edit payment.go"),
		parse(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"1","rawOutput":{"title":"payment of 7"}}}`),
		say("Paid"))
	require.Equal(t, []string{"one tool: Edit [payment].go"}, search(t, s, "payment"))
	require.Equal(t, []string{"one tool: Edit [order].go"}, search(t, s, "order"))
	require.Equal(t, []string{"one agent: [Paid]"}, search(t, s, "paid"))
}

func searchAnyText(t *testing.T, s store) {
	l := Create(t, s, "one")
	record(t, s, l, "-", parse(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text",
		"text":"NEAR a OR b, NOT body:x \"quoted\" 50% of a_b\u0000c🎉party\u0001\u0002"}}}`))
	for _, text := range []string{"", `"`, `""`, "*", "(", "^", ":", "+ -", "' --", "\x00", " \n", "\xff", `" * "`} {
		require.Empty(t, search(t, s, text), "%q", text)
	}
	for _, text := range []string{"a OR", "NEAR(", `"NEAR`, "b AND OR", "NOT", "body:x", "body : x", `qu*`, `"quoted"`,
		`quoted"`, "50%", "a_b", "a-b", "🎉", "party", "c\x00🎉"} {
		found := search(t, s, text)
		if strings.Contains(text, "AND") {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1, "%q", text)
	}
	require.Empty(t, search(t, s, strings.Repeat("word ", 2000)))
	require.Empty(t, search(t, s, strings.Repeat("(", 10_000)))
	require.Empty(t, search(t, s, strings.Repeat("日", 4_000)))
	require.Empty(t, search(t, s, strings.Repeat("x", 10_000)))
}

func searchWithoutSpaces(t *testing.T, s store) {
	l := Create(t, s, "one")
	record(t, s, l, "会话存储在SQLite文件中。", say("セッションのデータベースを検索します"), say(" สวัสดีครับ 한국어로"))
	require.Equal(t, []string{"one user: 会话[存储]在SQLite文件中。"}, search(t, s, "存储"))
	require.Equal(t, []string{"one user: 会话存储在[SQLite文件]中。"}, search(t, s, "sqlite文件"))
	require.Equal(t, []string{"one user: [会话]存储在SQLite[文件]中。"}, search(t, s, "文件 会话"))
	require.Empty(t, search(t, s, "储存"))
	const answer = "one agent: セッションの%sを検索します สวัสดีครับ 한국어로"
	require.Equal(t, []string{fmt.Sprintf(answer, "[データベース]")}, search(t, s, "データベース"))
	require.Len(t, search(t, s, "สวัสดี"), 1)
	require.Len(t, search(t, s, "한국어"), 1)
}

func searchFolds(t *testing.T, s store) {
	l := Create(t, s, "one")
	record(t, s, l, "ÉTÉ e\u0301tendu Ὀδυσσεύς Łódź straße İstanbul ЁЛКА x2y3 ½ 42% naïve_café がか 한국어 हिन्दी ﬁn €5 a\u0308")
	for text, found := range map[string]string{
		"été": "ÉTÉ", "ete": "ÉTÉ", "ETE": "ÉTÉ", "etendu": "e\u0301tendu", "étend": "e\u0301tendu",
		"ὀδυσσεύσ": "Ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ": "Ὀδυσσεύς", "Łodz": "Łódź", "lodz": "", "STRASSE": "", "straße": "straße",
		"istanbul": "İstanbul", "ёлка": "ЁЛКА", "елка": "", "x2": "x2y3", "2y": "", "½": "½", "42": "42", "4": "",
		"naive": "naïve", "cafe": "café", "naïve_caf": "naïve_café", `"cafe naive"`: "", "か": "か", "が": "が",
		"한국": "한국어", "국어": "", "fin": "", "ﬁn": "ﬁn", "5": "5", "ä": "a\u0308", "€": "", "e\u0301te\u0301": "ÉTÉ",
	} {
		all, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: text})
		require.NoError(t, err)
		marked := ""
		if len(all) > 0 {
			m := all[0].Matches[0]
			marked = all[0].Line[m.Start:m.End]
		}
		require.Equal(t, found, marked, "%q", text)
	}
}

func searchRunning(t *testing.T, s store) {
	l := Create(t, s, "one")
	number := Begin(t, s, l, sessionstore.Turn{Prompt: []update{text("user_message_chunk", "the prompt")}})
	require.NoError(t, s.Append(t.Context(), l, []update{say("the begin")}))
	require.Equal(t, []string{"one agent: [the] begin", "one user: [the] prompt"}, search(t, s, "the"))
	require.NoError(t, s.Append(t.Context(), l, []update{say("ning, and")}))
	require.Equal(t, []string{"one agent: the [beginning], and"}, search(t, s, "beginning"))
	require.Empty(t, search(t, s, `"begin"`))
	require.NoError(t, s.Append(t.Context(), l, []update{say(" more")}))
	require.NoError(t, s.EndTurn(t.Context(), l, number))
	require.Equal(t, []string{"one agent: the beginning, [and more]"}, search(t, s, `"and more"`))
	require.Len(t, search(t, s, "the"), 2)
}

func searchForks(t *testing.T, s store) {
	one := Create(t, s, "one")
	record(t, s, one, "common question")
	lease := fork(t, s, "one", sessionstore.Session{ID: "two"})
	record(t, s, one, "first way")
	record(t, s, lease, "second way")
	require.ElementsMatch(t, []string{"one user: [common] question", "two user: [common] question"}, search(t, s, "common"))
	require.Equal(t, []string{"two user: second [way]", "one user: first [way]"}, search(t, s, "way"))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.Equal(t, []string{"two user: [common] question"}, search(t, s, "common"))
	require.Equal(t, []string{"two user: second [way]"}, search(t, s, "way"))

	draft, err := s.NewDraft(t.Context(), "two")
	require.NoError(t, err)
	require.NoError(t, draft.Append(t.Context(), []update{text("user_message_chunk", "another way")}))
	require.Equal(t, []string{"two user: second [way]"}, search(t, s, "way"))
	activate(t, s, "two", sessionstore.Activation{History: draft})
	require.Equal(t, []string{"two user: another [way]", "two user: second [way]"}, search(t, s, "way"))
	require.Equal(t, []string{"two user: [common] question"}, search(t, s, "common"))
}

func searchLimits(t *testing.T, s store) {
	for _, id := range []string{"one", "two", "three"} {
		l := Create(t, s, id)
		for range 5 {
			record(t, s, l, "again "+id, say("again"))
		}
	}
	require.Len(t, search(t, s, "again"), 3*sessionstore.MaxFoundInSession)
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: "again", Limit: 4})
	require.NoError(t, err)
	require.Len(t, found, 4)
	require.Equal(t, sessionstore.ID("three"), found[0].Session.ID)
	require.Equal(t, sessionstore.ID("two"), found[3].Session.ID)
}

func searchDeleted(t *testing.T, s store) {
	record(t, s, Create(t, s, "one"), "a secret")
	record(t, s, Create(t, s, "two"), "a secret")
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.Equal(t, []string{"two user: a [secret]"}, search(t, s, "secret"))
}

func searchesOfOwners(t *testing.T, s sessionstore.Shared) {
	ann, bob := s.For("ann"), s.For("bob")
	record(t, s, Create(t, s, "one"), "shared word")
	record(t, ann, Create(t, ann, "one"), "shared word of Ann")
	record(t, bob, Create(t, bob, "two"), "shared word of Bob")
	require.Equal(t, []string{"one user: [shared] word"}, search(t, s, "shared"))
	require.Equal(t, []string{"one user: [shared] word of Ann"}, search(t, ann, "shared"))
	require.Equal(t, []string{"two user: [shared] word of Bob"}, search(t, bob, "shared"))
	require.Empty(t, search(t, s.For("\xff"), "shared"))
}
