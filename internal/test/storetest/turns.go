package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func turnTests() []testCase {
	return []testCase{
		{"S12/the end of a turn is part of its history", recordedEnd},
		{"S12/nothing is left of a turn that is taken back", takenBack},
		{"S12/a history is read while a turn is taken back", takenBackWhileRead},
		{"A29/ending a turn by an activation is activity", endByActivation},
		{"A27, A36, A37/updates are kept as their kinds say", keptUpdates},
		{"an update on several lines is kept", severalLines},
	}
}

func recordedEnd(t *testing.T, s store) {
	lease := Create(t, s, "one")
	number := Begin(t, s, lease, sessionstore.Turn{Prompt: []update{text("user_message_chunk", "go")}})
	end := sessionstore.TurnEnded("", "429: slow down")
	for range 2 {
		require.NoError(t, s.EndTurn(t.Context(), lease, number, end), "the second one, after an error, adds nothing")
	}
	want := texts(text("user_message_chunk", "go"), end)
	require.Equal(t, want, history(t, s, "one"))
	require.Equal(t, want, collected(t, s.Finished(t.Context(), "one")))
	fork(t, s, "one", sessionstore.Session{ID: "fork"})
	require.Equal(t, want, history(t, s, "fork"))
}

// takeBack takes back a turn, and returns whether that was possible.
func takeBack(t *testing.T, s store, l sessionstore.Lease, number int64, turn sessionstore.Turn) bool {
	t.Helper()
	taken, err := s.TakeBackTurn(t.Context(), l, number, turn)
	require.NoError(t, err)
	return taken
}

func takenBack(t *testing.T, s store) {
	long := strings.Repeat("word ", 5000) + "secret"
	refused := sessionstore.Turn{Title: "refused", Prompt: []update{
		text("user_message_chunk", "refused secret"), text("user_message_chunk", long)}}
	lease := Create(t, s, "one")
	for _, searched := range []bool{false, true} {
		number := Begin(t, s, lease, refused)
		require.EqualValues(t, 1, number)
		if searched {
			require.NotEmpty(t, search(t, s, "secret"))
		}
		require.True(t, takeBack(t, s, lease, number, refused))
		require.False(t, takeBack(t, s, lease, number, refused), "again, as after an error")
		got := get(t, s, "one")
		require.Empty(t, got.Title)
		require.Zero(t, got.Turns)
		require.Empty(t, history(t, s, "one"))
		require.Empty(t, search(t, s, "secret"))
	}
	// An interrupted turn has no end, so that the next prompt goes on in its last message.
	Begin(t, s, lease, sessionstore.Turn{Prompt: []update{text("user_message_chunk", "kept")}, Title: "kept"})
	for _, searched := range []bool{false, true} {
		number := Begin(t, s, lease, refused)
		if searched {
			require.NotEmpty(t, search(t, s, "secret"))
		}
		require.True(t, takeBack(t, s, lease, number, refused))
		require.Equal(t, []string{"one user: [kept]"}, search(t, s, "kept"))
		require.Empty(t, search(t, s, "secret"))
		require.Equal(t, texts(text("user_message_chunk", "kept")), history(t, s, "one"))
		require.Equal(t, "kept", get(t, s, "one").Title)
	}
	named := Begin(t, s, lease, refused)
	require.NoError(t, s.Rename(t.Context(), "one", "refused"))
	require.True(t, takeBack(t, s, lease, named, refused))
	require.Equal(t, "refused", get(t, s, "one").Title, "somebody has given it")
	record(t, s, lease, "next", say("answer"))
	require.Len(t, search(t, s, "answer"), 1)
}

func takenBackWhileRead(t *testing.T, s store) {
	lease := Create(t, s, "one")
	var want []string
	for i := range 200 { // more than a page
		record(t, s, lease, fmt.Sprint(i))
		want = append(want, text("user_message_chunk", fmt.Sprint(i)).String())
	}
	turn := sessionstore.Turn{Prompt: []update{text("user_message_chunk", "refused")}}
	number := Begin(t, s, lease, turn)
	var got []string
	for u, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		if got = append(got, u.String()); len(got) == 1 {
			require.True(t, takeBack(t, s, lease, number, turn))
		}
	}
	require.Equal(t, want, got)
}

func keptUpdates(t *testing.T, s store) {
	of := func(kind, more string) update {
		return parse(`{"update":{"sessionUpdate":"` + kind + `"` + more + `}}`)
	}
	notice := of("notice", `,"severity":"info","title":"x"`)
	title := of("session_info_update", `,"title":"x"`)
	unknown := []update{
		parse(`{ "update" : {"sessionUpdate":"tool_call","toolCallId":"1", "_meta":{"z":1,"a":2.50}} , "_meta":{"k":null}}`),
		parse(`{"update":{"sessionUpdate":"from_the_future","n":12345678901234567890}}`),
		parse(`{"update":{"x":"no kind at all"}}`),
		parse(`{"update":{"sessionUpdate":7}}`),
		parse(`{"update":{"sessionUpdate":"plan","entries":[],"entries":["twice"]}}`),
		parse(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}}`),
	}
	ofSubagents := []update{sessionstore.OfSubagent("sub_a", mode("fast")), say("a"),
		sessionstore.OfSubagent("sub_a", say("b")), sessionstore.OfSubagent("sub_b", title)}
	for name, c := range map[string]struct{ given, kept, states []update }{
		"the latest state of each kind": {
			given: []update{of("usage_update", `,"used":1`), say("a"), mode("ask"), of("usage_update", `,"used":2`),
				mode("code"), say("b"), of("config_option_update", `,"configOptions":[]`),
				of("available_commands_update", ""), mode("plan")},
			kept: []update{say("a"), say("b")},
			states: []update{of("available_commands_update", ""), mode("plan"),
				of("config_option_update", `,"configOptions":[]`), of("usage_update", `,"used":2`)},
		},
		"unknown kinds and members, byte for byte": {given: unknown, kept: unknown},
		"no titles and notices": {
			given: []update{say("a"), title, notice, of("prompt_suggestions_update", `,"suggestions":[]`), say("b")},
			kept:  []update{say("a"), say("b")},
		},
		"those of subagents as events of the session": {
			given: append([]update{sessionstore.OfSubagent("sub_a", notice)}, ofSubagents...), kept: ofSubagents,
		},
	} {
		lease := Create(t, s, name)
		for _, given := range [][]update{c.given[:3], c.given[3:]} {
			require.NoError(t, s.Append(t.Context(), lease, given))
		}
		activate(t, s, lease.ID, sessionstore.Activation{History: newDraft(t, s, name, c.given...)})
		require.Equal(t, texts(append(c.kept[:len(c.kept):len(c.kept)], c.kept...)...), history(t, s, name))
		require.Equal(t, texts(c.states...), states(t, s, name), name)
		require.Empty(t, get(t, s, name).Title)
	}
}

func severalLines(t *testing.T, s store) {
	lease := Create(t, s, "one")
	pretty := parse("{\n  \"update\": {\n    \"sessionUpdate\": \"plan\",\n \"entries\": [\"a\\nb\"]\n  }\n}\n")
	require.NoError(t, s.Append(t.Context(), lease, []update{say("a"), pretty, say("b")}))
	got := history(t, s, "one")
	require.Len(t, got, 3)
	require.JSONEq(t, pretty.String(), got[1])
	require.NotContains(t, got[1], "\n")
}

func endByActivation(t *testing.T, s store) {
	lease := Create(t, s, "one")
	Begin(t, s, lease, sessionstore.Turn{Prompt: []update{say("asked")}})
	requireNow := advanceClock(t, s, "one")
	activate(t, s, "one", sessionstore.Activation{})
	ended := get(t, s, "one").Updated
	requireNow(ended)

	advanceClock(t, s, "one")
	activate(t, s, "one", sessionstore.Activation{})
	require.Equal(t, ended, get(t, s, "one").Updated, "no turn was open")
}

// advanceClock waits until the store's clock is later than a session's last activity. A clock that
// shows the same to a session created 100 milliseconds later does not advance. It returns a check
// that a time is not earlier.
func advanceClock(t *testing.T, s store, id string) (isNew func(time.Time)) {
	t.Helper()
	before := get(t, s, id).Updated
	started := time.Now()
	for stopped := false; !stopped; {
		stopped = time.Since(started) > 100*time.Millisecond
		Create(t, s, "clock of "+id)
		shown := get(t, s, "clock of "+id).Updated
		require.NoError(t, s.Delete(t.Context(), sessionstore.ID("clock of "+id)))
		if shown.After(before) {
			return func(at time.Time) { require.False(t, at.Before(shown), "%s is not of %s", at, shown) }
		}
	}
	return func(at time.Time) { require.Equal(t, before, at, "the clock does not advance") }
}
