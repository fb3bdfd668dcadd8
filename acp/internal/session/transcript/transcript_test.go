package transcript_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/transcript"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripts say what happens in a session, and what comes of that: updates that both of its windows
// are shown and that are recorded, unless it says who gets them. & is the update that was sent.
//
//	send U     the agent sends an update
//	commit U   the agent commits one
//	rename T   a client chooses a title, or none
//	set U      the first window sets something
//	mark T     a rule decides about the call 1, for which the agent asks with a title
//	ask C      the user is asked about a call
//	reject     the first window has rejected the call 1
//	join       the other window is to know the states, of which two were stored
//	titled     says whether the session has a title
//	mode U     an update says the mode, which was "old"
//	notices    the first window shows notices from now on
//	rules      there are rules, for an agent that is known to ask little
const scripts = `
# a chosen title stays, and what else an update says arrives
titled -> false
send session_info_update {"title":"x"} -> shown: &
titled -> true
rename mine -> shown: session_info_update {"title":"mine"}
send session_info_update {"title":"x"} ->
send session_info_update {"title":"x","updatedAt":"now"} -> shown: session_info_update {"updatedAt":"now"}
send session_info_update {"updatedAt":"now"} -> shown: &
rename -> shown: session_info_update {"title":null}
titled -> false
send session_info_update {"title":"x"} -> shown: &

# what a client sets is shown to the others, until the agent sends what it is
set current_mode_update {"currentModeId":"plan"} -> other: &
join -> other: usage_update {"used":1}|other: current_mode_update {"currentModeId":"plan"}
send current_mode_update {"currentModeId":"build"} -> shown: &
join -> other: current_mode_update {"currentModeId":"old"}|other: usage_update {"used":1}

# what is committed is stored before it is shown
send tool_call {"title":"Look"} -> &
commit tool_call {"title":"Read"} -> shown: & (stored)|kept: &

# a warning is recorded as the message that it is without notices
send warning Gone -> shown: &|kept: agent_message_chunk {"content":{"text":"Gone","type":"text"}}
notices ->
send warning Gone -> shown: &

# a call about which a rule decides is marked, whatever the agent says later
send tool_call {"title":"Look","toolCallId":"1"} -> &
mark Read -> tool_call_update {"title":"Look (allowed)","toolCallId":"1"}
mark Read -> tool_call_update {"title":"Look (allowed)","toolCallId":"1"}
send tool_call_update {"status":"in_progress","toolCallId":"1"} -> &
send tool_call_update {"title":"App","toolCallId":"1"} -> &|tool_call_update {"title":"App (allowed)","toolCallId":"1"}
send tool_call_update {"title":"App (allowed)","toolCallId":"1"} -> &
send tool_call_update {"status":"completed","title":"A","toolCallId":"1"} -> &|tool_call_update {"title":"A (allowed)","toolCallId":"1"}
send tool_call_update {"title":"Later","toolCallId":"1"} -> &

# so is one that the agent has not announced
mark Read -> tool_call {"title":"Read (allowed)","toolCallId":"1"}
mark Read -> tool_call_update {"title":"Read (allowed)","toolCallId":"1"}
send tool_call_update {"title":"App","toolCallId":"1"} -> &|tool_call_update {"title":"App (allowed)","toolCallId":"1"}

# so is one that has no title
mark -> tool_call {"title":"read (allowed)","toolCallId":"1"}

# a call that is mentioned only in a question is recorded from that, and that it was rejected
ask 1 -> kept: tool_call {"title":"Run","toolCallId":"1"}
ask 1 ->
reject -> other+kept: tool_call_update {"status":"failed","toolCallId":"1"}
ask ->

# the user is told once that an agent does something without asking, if there are rules
send tool_call {"kind":"edit","toolCallId":"1"} -> &
send tool_call_update {"status":"completed","toolCallId":"1"} -> &
rules ->
send tool_call_update {"status":"failed","toolCallId":"1"} -> &
send tool_call {"kind":"read","status":"completed","toolCallId":"2"} -> &
ask 3 -> kept: tool_call {"title":"Run","toolCallId":"3"}
send tool_call_update {"kind":"edit","status":"completed","toolCallId":"3"} -> &
send tool_call_update {"status":"completed","toolCallId":"1"} -> &|shown: warning It asks little
send tool_call_update {"status":"completed","toolCallId":"1"} -> &

# names count as they are spelled
mode current_mode_update {"currentModeId":"plan","CurrentModeId":"build"} -> plan
mode current_mode_update {"CurrentModeId":"plan"} -> old
mode config_option_update {"configOptions":[{"id":"mode","currentValue":"plan","CurrentValue":"build"}]} -> plan
mode config_option_update {"configOptions":[7,{"id":"x","category":"mode","currentValue":"plan"}]} -> plan
mode config_option_update {"configOptions":[{"id":"mode","currentValue":true},{"id":"x","currentValue":"plan"}]} -> old
mode usage_update {"currentModeId":"plan"} -> old
`

// Clauses A29, A30, A37, N7, R2, R4, S11.
func TestTranscript(t *testing.T) {
	for name, steps := range tabletest.Parse(t, scripts) {
		t.Run(name, func(t *testing.T) {
			w := newTalk(t)
			for _, step := range steps {
				do, want, _ := strings.Cut(step, " ->")
				verb, what, _ := strings.Cut(do, " ")
				want = strings.ReplaceAll(strings.TrimSpace(want), "&", what)
				require.Equal(t, want, w.do(verb, what), step)
			}
		})
	}
	err := newTalk(t).Send(t.Context(), backend.Update{Raw: []byte("[]")}, transcript.ShowFirst)
	require.ErrorContains(t, err, "not an object")
}

// window is a client that takes everything, and notes it.
type window struct{ got []string }

func (*window) HasLeft() bool         { return false }
func (*window) Answers() bool         { return true }
func (*window) Room() <-chan struct{} { return nil }
func (*window) Full() <-chan struct{} { return nil }

// talk is the transcript of a session with two windows.
type talk struct {
	*transcript.Transcript[*window]
	t           *testing.T
	store       sessionstore.Store
	mine, other window
	notices     bool
	known       int // of the history
}

func newTalk(t *testing.T) *talk {
	w := &talk{t: t, store: memstore.New(t)}
	log := slog.New(slog.DiscardHandler)
	group := tasks.NewGroup(log)
	viewers := turns.NewViewers(&w.mine, turns.ViewerOptions[*window]{Go: group.Go})
	joining, _ := viewers.Enter(&w.other)
	joining.Keep()()
	viewers.Settle(t.Context(), &w.other, func() {})
	r := record.New(record.Options{Store: w.store, Lease: storetest.Create(t, w.store, "s"),
		Failed: func(error) {}, Subagents: record.NewSubagentLimit(0, log), Tasks: group,
		Recorder: sessionstore.RecorderOptions{Interval: time.Hour}}) // only as it is flushed
	w.Transcript = &transcript.Transcript[*window]{Record: r, Lasts: true, Warned: new(atomic.Bool), Log: log,
		Permits: &permission.Permits{}, Charged: func([]sessionstore.Charge) {},
		Audience: &transcript.Audience[*window]{Viewers: viewers, Address: address.New("s"),
			Shown:        tasks.NewMutex(transcript.Shown{}),
			ShowsNotices: func(*window) bool { return w.notices },
			Deliver: func(to *window, u backend.Update, _ json.RawMessage) error {
				text := describe(u)
				if len(w.history()) > w.known {
					text += " (stored)"
				}
				to.got = append(to.got, text)
				return nil
			}}}
	t.Cleanup(func() {
		require.NoError(t, r.Close(context.Background()))
		viewers.Close()
		group.Wait(context.Background())
	})
	return w
}

// do does a step of a script, and returns what comes of it.
func (w *talk) do(verb, what string) string {
	ctx, one := w.t.Context(), calls.Key{ID: "1"}
	announce := func(id, title string) backend.Update {
		return parse(`tool_call {"toolCallId":"` + id + `","title":"` + title + `"}`)
	}
	var err error
	switch verb {
	case "send", "commit":
		err = w.Send(ctx, parse(what), transcript.Order(verb == "commit"))
	case "rename":
		w.Rename(ctx, what)
	case "set":
		w.ShowSetting(ctx, &w.mine, parse(what))
	case "mark":
		err = w.ShowMarked(ctx, one, permission.Call{Title: what, Kind: "read"}, " (allowed)",
			func(title string) backend.Update { return announce("1", title) })
	case "ask":
		_, err = w.Ask(ctx, calls.Key{ID: what}, announce(what, "Run"), func() {})
	case "reject":
		w.RecordRejected(ctx, one, &w.mine)
	case "join":
		stored := []backend.Update{parse(`current_mode_update {"currentModeId":"old"}`),
			parse(`usage_update {"used":1}`)}
		err = w.Audience.Shown.With(ctx, func(now *transcript.Shown) error {
			for _, u := range now.States(stored) {
				w.other.got = append(w.other.got, describe(u))
			}
			return nil
		})
	case "titled":
		_ = w.Audience.Shown.With(ctx, func(now *transcript.Shown) error {
			what = strconv.FormatBool(now.Titled)
			return nil
		})
		return what
	case "mode":
		now := transcript.Shown{Mode: "old"}
		now.NoteMode(parse(what))
		return now.Mode
	case "notices":
		w.notices = true
	case "rules":
		w.Permits.Configured, w.Unruled = &permission.Permissions{}, "It asks little"
	default:
		require.Fail(w.t, verb, "no such step")
	}
	require.NoError(w.t, err)
	return w.outcome()
}

// outcome returns who was shown which updates since the last step, and which were recorded.
func (w *talk) outcome() string {
	require.NoError(w.t, w.Record.Flush(w.t.Context()))
	kept := w.history()
	kept, w.known = kept[w.known:], len(kept)
	var all []string
	for _, u := range w.other.got {
		to := map[bool]string{true: "shown: ", false: "other: "}[slices.Contains(w.mine.got, u)]
		if at := slices.Index(kept, u); at >= 0 {
			kept = slices.Delete(kept, at, at+1)
			to = map[string]string{"shown: ": "", "other: ": "other+kept: "}[to]
		}
		all = append(all, to+u)
	}
	for _, u := range kept {
		all = append(all, "kept: "+u)
	}
	w.mine.got, w.other.got = nil, nil
	return strings.Join(all, "|")
}

// history returns what is stored.
func (w *talk) history() (all []string) {
	for u, err := range w.store.History(w.t.Context(), "s") {
		require.NoError(w.t, err)
		all = append(all, describe(u))
	}
	return all
}

// parse returns the update that a script names by its kind and its members.
func parse(text string) backend.Update {
	kind, members, _ := strings.Cut(text, " ")
	if kind == "warning" {
		return backend.Warning(backend.Text(members))
	}
	said := map[string]any{}
	_ = json.Unmarshal([]byte(members), &said)
	said["sessionUpdate"] = kind
	return backend.NewUpdate(said)
}

// describe returns the name of an update in scripts.
func describe(u backend.Update) string {
	if message, ok := backend.WarningMessage(u); ok {
		return "warning " + strings.TrimSpace(backend.ChunkText(message))
	}
	var said map[string]any
	_ = json.Unmarshal(u.Body(), &said)
	delete(said, "sessionUpdate")
	return string(u.Kind) + " " + string(backend.Encode(said))
}
