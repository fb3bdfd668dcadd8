package sessionstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/sessionstore"
)

type update = sessionstore.Update

func chunk(kind, words string) update {
	return fmt.Appendf(nil, `{"update":{"sessionUpdate":"%s_chunk","content":{"type":"text","text":%q}}}`, kind, words)
}

func strs(updates []update) []string {
	out := []string{}
	for _, u := range updates {
		out = append(out, string(u))
	}
	return out
}

func TestMergeJoinsNeighbouringTextOfOneMessage(t *testing.T) {
	identified := func(id, words string) update {
		return fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q},"messageId":%q}}`, words, id)
	}
	agent := func(words string) update { return chunk("agent_message", words) }
	for name, c := range map[string]struct{ in, want []update }{
		"none":            {nil, nil},
		"one keeps bytes": {[]update{update(`{ "update" : {"content":{"text":"\u0061","type":"text"},"sessionUpdate":"agent_message_chunk"}}`)}, nil},
		"several":         {[]update{agent("a"), agent(" b\n"), agent(""), agent("c")}, []update{agent("a b\nc")}},
		"escapes": {
			[]update{update(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u00e9<"}}}`), agent("ü\u2028")},
			[]update{update(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"é<ü` + "\u2028" + `"}}}`)},
		},
		"thoughts and answers": {[]update{chunk("agent_thought", "a"), agent("b"), chunk("agent_thought", "c")}, nil},
		"thoughts":             {[]update{chunk("agent_thought", "a"), chunk("agent_thought", "b")}, []update{chunk("agent_thought", "ab")}},
		"a prompt":             {[]update{chunk("user_message", "a"), chunk("user_message", "b")}, []update{chunk("user_message", "ab")}},
		"the same message":     {[]update{identified("1", "a"), identified("1", "b")}, []update{identified("1", "ab")}},
		"two messages":         {[]update{identified("1", "a"), identified("2", "b"), agent("c")}, nil},
		"something between":    {[]update{agent("a"), update(`{"update":{"sessionUpdate":"plan","entries":[]}}`), agent("b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want == nil {
				want = c.in
			}
			require.Equal(t, strs(want), strs(sessionstore.Merge(c.in)))
		})
	}
}

func TestP6_MergeLeavesAloneWhatItDoesNotKnow(t *testing.T) {
	for name, odd := range map[string]string{
		"_meta of the update":     `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"_meta":{}}}`,
		"_meta of the content":    `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","_meta":{}}}}`,
		"_meta beside the update": `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}},"_meta":{}}`,
		"annotations":             `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","annotations":{}}}}`,
		"an unknown member":       `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"parent":"1"}}`,
		"a member in other case":  `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","Text":"x","text":"y"}}}`,
		"a member twice":          `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","text":"y"}}}`,
		"an image":                `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}}`,
		"a lone surrogate":        `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}}`,
		"invalid UTF-8":           "{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"\xff\"}}}",
		"an unknown kind":         `{"update":{"sessionUpdate":"agent_song_chunk","content":{"type":"text","text":"x"}}}`,
		"a number for text":       `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":1}}}`,
	} {
		t.Run("P6/"+name, func(t *testing.T) {
			in := []update{update(odd), update(odd)}
			require.Equal(t, strs(in), strs(sessionstore.Merge(in)))
		})
	}
}

func TestMergedChunksAreBounded(t *testing.T) {
	part := chunk("agent_message", strings.Repeat("x", 10_000))
	merged := sessionstore.Merge([]update{part, part, part, part, part, part, part, part})
	require.Len(t, merged, 2)
	huge := chunk("agent_message", strings.Repeat("x", 100_000))
	require.Equal(t, strs([]update{huge, huge}), strs(sessionstore.Merge([]update{huge, huge})))
}

// TestMergeKeepsTheConversation says what merging must not change: who says what, in which order.
func TestMergeKeepsTheConversation(t *testing.T) {
	kinds := []string{"agent_message", "agent_thought", "user_message"}
	rapid.Check(t, func(t *rapid.T) {
		var in []update
		for range rapid.IntRange(0, 30).Draw(t, "length") {
			if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
				in = append(in, update(`{"update":{"sessionUpdate":"plan"}}`))
				continue
			}
			text, err := json.Marshal(rapid.String().Draw(t, "text"))
			require.NoError(t, err)
			in = append(in, fmt.Appendf(nil, `{"update":{"sessionUpdate":"%s_chunk","content":{"type":"text","text":%s}}}`,
				rapid.SampledFrom(kinds).Draw(t, "kind"), text))
		}
		out := sessionstore.Merge(in)
		require.Equal(t, conversation(t, in), conversation(t, out))
		require.Equal(t, strs(out), strs(sessionstore.Merge(out)))
	})
}

// conversation is who says what, without regard to chunks.
func conversation(t require.TestingT, updates []update) (said []string) {
	last := ""
	for _, u := range updates {
		var v struct {
			Update struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		require.NoError(t, json.Unmarshal(u, &v))
		kind := v.Update.SessionUpdate
		if kind != last || kind == "plan" {
			said = append(said, kind+": ")
		}
		said[len(said)-1] += v.Update.Content.Text
		last = kind
	}
	return said
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`), []byte(`{"update":{}}`))
	f.Add([]byte("{\n\"update\":{}}"), []byte(`{"update":{"sessionUpdate":"usage_update"}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		parts, err := sessionstore.Split([]update{a, b, a})
		if err != nil {
			require.ErrorAs(t, err, new(*sessionstore.UpdateError))
			return
		}
		for _, u := range sessionstore.Merge(parts.History) {
			require.NotContains(t, string(u), "\n")
			_, err := sessionstore.Split([]update{u})
			require.NoError(t, err)
		}
	})
}
