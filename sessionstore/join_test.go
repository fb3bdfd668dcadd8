package sessionstore_test

import (
	"bytes"
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

// yielding is a history that ends with err, if there is one.
func yielding(updates []sessionstore.Update, err error) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for _, u := range updates {
			if !yield(bytes.Clone(u), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func joined(t require.TestingT, updates []sessionstore.Update) (out []sessionstore.Update) {
	for u, err := range sessionstore.Joined(yielding(updates, nil)) {
		require.NoError(t, err)
		require.True(t, json.Valid(u), "%s", u)
		out = append(out, u)
	}
	return out
}

func piece(kind, around, text string) sessionstore.Update {
	return sessionstore.Update(`{"update":{"sessionUpdate":"` + kind + `",` + around + `"content":{"type":"text","text":"` + text + `"}}}`)
}

func TestA27_NeighbouringChunksAreJoinedInAReplay(t *testing.T) {
	const agent = "agent_message_chunk"
	one, two := piece(agent, "", "one "), piece(agent, "", "two")
	for name, tc := range map[string]struct{ in, want []sessionstore.Update }{
		"none":                  {},
		"one":                   {[]sessionstore.Update{one}, []sessionstore.Update{one}},
		"two":                   {[]sessionstore.Update{one, two}, []sessionstore.Update{piece(agent, "", "one two")}},
		"escapes":               {[]sessionstore.Update{piece(agent, "", `a\"\\`), piece(agent, "", `\\\"b\u00e9`)}, []sessionstore.Update{piece(agent, "", `a\"\\\\\"b\u00e9`)}},
		"looks like the end":    {[]sessionstore.Update{one, piece(agent, "", `x\"}}}`)}, []sessionstore.Update{piece(agent, "", `one x\"}}}`)}},
		"same message":          {[]sessionstore.Update{piece(agent, `"messageId":"m",`, "a"), piece(agent, `"messageId":"m",`, "b")}, []sessionstore.Update{piece(agent, `"messageId":"m",`, "ab")}},
		"other message":         {[]sessionstore.Update{piece(agent, `"messageId":"m",`, "a"), piece(agent, `"messageId":"n",`, "b")}, nil},
		"other kind":            {[]sessionstore.Update{one, piece("agent_thought_chunk", "", "b")}, nil},
		"two prompts":           {[]sessionstore.Update{piece("user_message_chunk", "", "a"), piece("user_message_chunk", "", "b")}, nil},
		"meta":                  {[]sessionstore.Update{piece(agent, `"_meta":{},`, "a"), piece(agent, `"_meta":{},`, "b")}, nil},
		"unknown member":        {[]sessionstore.Update{piece(agent, `"x":1,`, "a"), piece(agent, `"x":1,`, "b")}, nil},
		"unknown kind":          {[]sessionstore.Update{piece("x", "", "a"), piece("x", "", "b")}, nil},
		"something behind it":   {[]sessionstore.Update{one, sessionstore.Update(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a","annotations":{"x":"b"}}}}`)}, nil},
		"half a character":      {[]sessionstore.Update{one, piece(agent, "", "\xc3")}, nil},
		"half a pair":           {[]sessionstore.Update{one, piece(agent, "", `\ud83d`)}, nil},
		"the other half":        {[]sessionstore.Update{one, piece(agent, "", `\uDE00`)}, nil},
		"shorter than its ends": {[]sessionstore.Update{piece(agent, "", ""), sessionstore.Update(`{"update":{}}`)}, nil},
	} {
		want := tc.want
		if want == nil {
			want = tc.in
		}
		require.Equal(t, encoded(want), encoded(joinedAsIs(tc.in)), name)
	}
}

// joinedAsIs is joined for updates that are no valid JSON, as a store never has them.
func joinedAsIs(updates []sessionstore.Update) (out []sessionstore.Update) {
	for u := range sessionstore.Joined(yielding(updates, nil)) {
		out = append(out, u)
	}
	return out
}

func encoded(updates []sessionstore.Update) string { return fmt.Sprintf("%q", updates) }

func TestA27_RunsOfChunksAreBounded(t *testing.T) {
	var short, long []sessionstore.Update
	for range 1000 {
		short = append(short, piece("agent_message_chunk", "", "x"))
		long = append(long, piece("agent_message_chunk", "", strings.Repeat("x", 1000)))
	}
	require.Len(t, joined(t, short), 4)
	require.Less(t, len(joined(t, long)), 150)
	for _, u := range joined(t, long) {
		require.Less(t, len(u), 8<<10)
	}
}

func TestA27_AnErrorComesBehindWhatWasRead(t *testing.T) {
	failure := errors.New("damaged")
	history := []sessionstore.Update{piece("agent_message_chunk", "", "a"), piece("agent_message_chunk", "", "b")}
	var got []string
	for u, err := range sessionstore.Joined(yielding(history, failure)) {
		got = append(got, fmt.Sprint(string(u), err))
	}
	require.Equal(t, []string{string(piece("agent_message_chunk", "", "ab")) + "<nil>", "damaged"}, got)
	for range sessionstore.Joined(yielding(history, failure)) {
		break
	}
}

func TestA27_JoiningChangesNoText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SampledFrom([]string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})
		around := rapid.SampledFrom([]string{"", `"messageId":"m",`, `"_meta":{"text":"x"},`})
		var history []sessionstore.Update
		for range rapid.IntRange(0, 30).Draw(t, "chunks") {
			text, err := json.Marshal(rapid.String().Draw(t, "text"))
			require.NoError(t, err)
			history = append(history, piece(kinds.Draw(t, "kind"), around.Draw(t, "around"), string(text[1:len(text)-1])))
		}
		require.Equal(t, spoken(t, history), spoken(t, joined(t, history)))
	})
}

// spoken is a history's text, with neighbours of a kind and message as one.
func spoken(t *rapid.T, history []sessionstore.Update) (out []string) {
	last := ""
	for _, u := range history {
		var c struct {
			Update struct {
				SessionUpdate, MessageID string
				Content                  struct{ Text string }
				Meta                     json.RawMessage `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal(u, &c))
		of := fmt.Sprint(c.Update.SessionUpdate, c.Update.MessageID, string(c.Update.Meta))
		if of != last {
			out = append(out, of+": ")
			last = of
		}
		out[len(out)-1] += c.Update.Content.Text
	}
	return out
}
