package serve

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestUsersWhoDoNotLookAreNotified(t *testing.T) {
	question, answered := acp.QuestionEvent{Session: "s", Open: true}, acp.QuestionEvent{Session: "s"}
	begun := acp.TurnEvent{Session: "s", Running: true}
	ended := acp.TurnEvent{Session: "s", StopReason: "end_turn"}
	status := acp.RequestEvent{Session: "s", Method: "session/status"}
	prompt := acp.RequestEvent{Session: "s", Method: "session/prompt", Duration: 5 * time.Minute}
	slow := acp.RequestEvent{Session: "s", Method: "session/status", Duration: 5 * time.Minute}
	resumed := acp.RequestEvent{Session: "s", Method: "session/resume"}
	// Each step is an event, a time that passes, or what a user is told then.
	for name, steps := range map[string][]any{
		"a question":             {begun, question, 2 * time.Minute, "", time.Minute, "question", time.Hour, ""},
		"one that was answered":  {begun, question, 2 * time.Minute, answered, time.Hour, ""},
		"one that waits longer":  {begun, 4 * time.Minute, question, "question", answered, ended, "", 3 * time.Minute, "turn_ended"},
		"several":                {begun, question, question, time.Hour, "question", answered, time.Hour, "", answered, question, "question"},
		"who looks":              {begun, question, 2 * time.Minute, status, 2 * time.Minute, "", time.Minute, "question", status, time.Hour, ""},
		"who looks in the turn":  {begun, time.Hour, "", status, time.Minute, question, "", 2 * time.Minute, "question"},
		"who looked before":      {begun, 5 * time.Minute, ended, slow, "turn_ended"},
		"a program reconnects":   {begun, question, 2 * time.Minute, resumed, time.Minute, "question"},
		"a turn":                 {begun, 5 * time.Minute, ended, prompt, "turn_ended", time.Hour, ""},
		"a short turn":           {begun, time.Minute, ended, "", 2 * time.Minute, "turn_ended"},
		"who sees its end":       {begun, 5 * time.Minute, ended, prompt, status, time.Hour, ""},
		"a late prompt":          {begun, ended, prompt, time.Hour, "turn_ended"},
		"who prompts again":      {begun, ended, time.Minute, begun, time.Hour, ""},
		"one that was stopped":   {begun, time.Hour, acp.TurnEvent{Session: "s", StopReason: "cancelled"}, time.Hour, ""},
		"one that failed":        {begun, time.Hour, acp.TurnEvent{Session: "s", Err: errors.New("x")}, "turn_failed"},
		"an agent that flickers": {begun, time.Hour, question, "question", answered, question, answered, question, time.Minute, ""},
		"a rule answers":         {begun, question, time.Minute, acp.AnswerEvent{Session: "s", Choice: "allow_once", Rule: "x"}, 2 * time.Minute, "question"},
		"the user answers":       {begun, question, time.Minute, acp.AnswerEvent{Session: "s", Choice: "allow_once"}, answered, ended, 2 * time.Minute, "", time.Minute, "turn_ended"},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			n := newNotifier(Options{Notify: &process.Command{}})
			n.now = func() time.Time { return now }
			for i, step := range steps {
				switch step := step.(type) {
				case time.Duration:
					now = now.Add(step)
				case string:
					told := ""
					for _, one := range n.due(10) {
						require.Equal(t, attended{"ana", "s"}, one.attended)
						told += one.event
					}
					require.Equal(t, step, told, "step %d", i)
				default:
					n.observe("ana", step)
				}
			}
			for n.of("ana", "s").questions > 0 {
				n.observe("ana", answered)
			}
			for n.of("ana", "s").turns > 0 {
				n.observe("ana", ended)
			}
			n.observe("ana", acp.RequestEvent{Session: "any text", Method: "session/close"})
			now = now.Add(time.Hour)
			n.due(10)
			now = now.Add(time.Hour)
			n.due(10)
			require.Empty(t, n.sessions, "what needs nobody is forgotten")
		})
	}
}

// clock lets the notifier of a server think that time has passed.
func (h *host) clock() (pass func(time.Duration)) {
	var later atomic.Int64
	h.notifier.mu.Lock()
	defer h.notifier.mu.Unlock()
	h.notifier.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	return func(d time.Duration) { later.Add(int64(d)) }
}

// notifyTo returns options with a command that writes what it is told to a file.
func notifyTo(t *testing.T, path string) func(*Options) {
	t.Helper()
	needs.Programs(t, "sh")
	return func(o *Options) {
		o.Notify = &process.Command{Path: "sh", Args: []string{"-c", `cat > "$1.new" && mv "$1.new" "$1"`, "-", path}}
	}
}

func TestTheNotifyCommandIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "told")
	h := start(t, withPage, notifyTo(t, path))
	pass := h.clock()
	told := func(event string) map[string]any {
		t.Helper()
		var message map[string]any
		require.Eventually(t, func() bool {
			message = nil
			content, err := os.ReadFile(path)
			return err == nil && json.Unmarshal(content, &message) == nil && message["event"] == event
		}, time.Minute, time.Millisecond)
		require.NotEmpty(t, message["time"])
		delete(message, "time")
		return message
	}
	cwd := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, os.Mkdir(cwd, 0o700))
	editor := connect(t, "ws://"+h.address, h.add("ana", cwd)).initialize()
	made := editor.open(cwd).id(t)
	require.Empty(t, editor.say(made, "Find \u202ethe file").Error)
	pass(time.Hour)
	require.Equal(t, map[string]any{"event": "turn_ended", "user": "ana", "session": made,
		"title": "Find the file", "folders": []any{"shop"}}, told("turn_ended"))

	h.pair("ana", acp.RoleWatch)
	list := h.tokens("ana")
	require.Equal(t, map[string]any{"event": "device_paired", "user": "ana", "title": "phone",
		"device": list[len(list)-1].ID, "role": "watch"}, told("device_paired"))
}

// A command that fails, or does not end, is said and ended, without what it has printed.
func TestTheNotifyCommandFails(t *testing.T) {
	needs.Programs(t, "sh")
	h := start(t)
	n := newNotifier(Options{Store: h.options.Store, Log: h.options.Log,
		Notify: &process.Command{Path: "sh", Args: []string{"-c", "echo secret >&2; exit 7"}}})
	require.NoError(t, n.send(t.Context(), notification{attended: attended{"ana", "gone"}}), "it was deleted")
	cwd := t.TempDir()
	editor := connect(t, "ws://"+h.address, h.add("ana", cwd)).initialize()
	one := notification{attended: attended{"ana", sessionstore.ID(editor.open(cwd).id(t))}}
	require.EqualError(t, n.send(t.Context(), one), "exit status 7; run it in a terminal to see why")
	n.command = &process.Command{Path: "sh", Args: []string{"-c", "sleep 600"}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the server ends"))
	require.EqualError(t, n.send(ctx, one), "the server ends")
}
