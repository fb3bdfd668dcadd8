package sessionstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// yielding returns a history that ends with err, unless err is nil.
func yielding(updates []update, err error) iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		for _, u := range updates {
			if !yield(sessionstore.StoredUpdate([]byte(u.String())), nil) {
				return
			}
		}
		if err != nil {
			yield(update{}, err)
		}
	}
}

func joined(t require.TestingT, updates []update) (out []update) {
	for u, err := range sessionstore.Joined(yielding(updates, nil)) {
		require.NoError(t, err)
		out = append(out, u)
	}
	return out
}

func piece(kind, around, text string) update {
	return sessionstore.StoredUpdate([]byte(`{"update":{"sessionUpdate":"` + kind + `",` + around + `"content":{"type":"text","text":"` + text + `"}}}`))
}

var ofSubagent = sessionstore.OfSubagent

// Clause A27.
func TestJoined(t *testing.T) {
	const agent = "agent_message_chunk"
	one, two := piece(agent, "", "one "), piece(agent, "", "two")
	odd := func(raw string) []update {
		u := sessionstore.StoredUpdate([]byte(raw))
		return []update{u, u}
	}
	for name, tc := range map[string]struct{ in, want []update }{
		"none":                  {},
		"one keeps its bytes":   {[]update{parse(`{ "update" : {"content":{"text":"\u0061","type":"text"},"sessionUpdate":"agent_message_chunk"}}`)}, nil},
		"two":                   {[]update{one, two}, []update{piece(agent, "", "one two")}},
		"thoughts":              {[]update{piece("agent_thought_chunk", "", "a"), piece("agent_thought_chunk", "", "b")}, []update{piece("agent_thought_chunk", "", "ab")}},
		"other order":           {odd(`{"update":{"content":{"text":"a","type":"text"},"sessionUpdate":"agent_message_chunk"}}`), []update{parse(`{"update":{"content":{"text":"aa","type":"text"},"sessionUpdate":"agent_message_chunk"}}`)}},
		"escapes":               {[]update{piece(agent, "", `a\"\\`), piece(agent, "", `\\\"b\u00e9`)}, []update{piece(agent, "", `a\"\\\\\"b\u00e9`)}},
		"looks like the end":    {[]update{one, piece(agent, "", `x\"}}}`)}, []update{piece(agent, "", `one x\"}}}`)}},
		"of a subagent":         {[]update{ofSubagent("sub_a", one), ofSubagent("sub_a", two), ofSubagent("sub_b", two), two}, []update{ofSubagent("sub_a", piece(agent, "", "one two")), ofSubagent("sub_b", two), two}},
		"other things of one":   {[]update{ofSubagent("sub_a", piece("plan", "", "a")), ofSubagent("sub_a", piece("plan", "", "b"))}, nil},
		"same message":          {[]update{piece(agent, `"messageId":"m",`, "a"), piece(agent, `"messageId":"m",`, "b")}, []update{piece(agent, `"messageId":"m",`, "ab")}},
		"other message":         {[]update{piece(agent, `"messageId":"m",`, "a"), piece(agent, `"messageId":"n",`, "b"), one}, nil},
		"other kind":            {[]update{one, piece("agent_thought_chunk", "", "b"), two}, nil},
		"an event in between":   {[]update{one, call(1), two}, nil},
		"two prompts":           {[]update{piece("user_message_chunk", "", "a"), piece("user_message_chunk", "", "b")}, nil},
		"something after it":    {[]update{one, parse(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a","annotations":{"x":"b"}}}}`)}, nil},
		"half a character":      {[]update{one, piece(agent, "", "\xc3")}, nil},
		"half a pair":           {[]update{one, piece(agent, "", `\ud83d`)}, nil},
		"the other half":        {[]update{one, piece(agent, "", `\uDE00`)}, nil},
		"shorter than its ends": {[]update{piece(agent, "", ""), parse(`{"update":{}}`)}, nil},

		"P6/_meta of the update":    {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"_meta":{}}}`), nil},
		"P6/_meta of the content":   {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","_meta":{}}}}`), nil},
		"P6/_meta of the params":    {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}},"_meta":{}}`), nil},
		"P6/annotations":            {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","annotations":{}}}}`), nil},
		"P6/an unknown member":      {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"parent":"1"}}`), nil},
		"P6/a member in other case": {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","Text":"x","text":"y"}}}`), nil},
		"P6/a member twice":         {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","text":"y"}}}`), nil},
		"P6/an image":               {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","text":"","mimeType":"image/png"}}}`), nil},
		"P6/a lone surrogate":       {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}}`), nil},
		"P6/invalid UTF-8":          {odd("{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"\xff\"}}}"), nil},
		"P6/an unknown kind":        {odd(`{"update":{"sessionUpdate":"agent_song_chunk","content":{"type":"text","text":"x"}}}`), nil},
		"P6/a number for text":      {odd(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":1}}}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want == nil {
				want = tc.in
			}
			require.Equal(t, strs(want), strs(joined(t, tc.in)))
		})
	}
}

// Clause A27.
func TestJoinedIsBounded(t *testing.T) {
	var short, long []update
	for range 1000 {
		short = append(short, piece("agent_message_chunk", "", "x"))
		long = append(long, piece("agent_message_chunk", "", strings.Repeat("x", 1000)))
	}
	require.Len(t, joined(t, short), 4)
	require.Less(t, len(joined(t, long)), 150)
	for _, u := range joined(t, long) {
		require.Less(t, len(u.Raw), 8<<10)
	}
}

// Clause A27.
func TestJoinedYieldsAnErrorAfterWhatWasRead(t *testing.T) {
	failure := errors.New("damaged")
	history := []update{piece("agent_message_chunk", "", "a"), piece("agent_message_chunk", "", "b")}
	var got []string
	for u, err := range sessionstore.Joined(yielding(history, failure)) {
		got = append(got, fmt.Sprint(u, err))
	}
	require.Equal(t, []string{fmt.Sprint(piece("agent_message_chunk", "", "ab"), nil), fmt.Sprint(update{}, failure)}, got)
	for range sessionstore.Joined(yielding(history, failure)) {
		break
	}
}

// Clause A27.
func TestJoinedKeepsTheConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SampledFrom([]string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "plan"})
		around := rapid.SampledFrom([]string{"", `"messageId":"m",`, `"_meta":{"text":"x"},`})
		var history []update
		for range rapid.IntRange(0, 30).Draw(t, "chunks") {
			text, err := json.Marshal(rapid.String().Draw(t, "text"))
			require.NoError(t, err)
			history = append(history, piece(kinds.Draw(t, "kind"), around.Draw(t, "around"), string(text[1:len(text)-1])))
		}
		require.Equal(t, conversation(t, history), conversation(t, joined(t, history)))
	})
}

// conversation returns the text of a history, with neighbouring chunks of the same kind and message
// as one.
func conversation(t *rapid.T, history []update) (out []string) {
	last := ""
	for _, u := range history {
		var c struct {
			Update struct {
				MessageID string
				Content   struct{ Text string }
				Meta      json.RawMessage `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal(u.Raw, &c))
		of := fmt.Sprint(u.Kind, c.Update.MessageID, string(c.Update.Meta))
		if of != last {
			out = append(out, of+": ")
			last = of
		}
		out[len(out)-1] += c.Update.Content.Text
	}
	return out
}
