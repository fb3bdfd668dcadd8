package proxy_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func TestCrashDuringTurn(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nsend "+
		fmt.Sprintf(update, `{"n":"last"}`)+
		`send {"jsonrpc":"2.0","id":1,"method":"session/request_permission",`+
		`"params":{"sessionId":"child-1"}}`+
		"\nstderr out of memory\nexit 3\n")
	b.client.answers["session/request_permission"] = func() (backend.Raw, error) {
		return nil,
			jsonrpc.ErrClosed
	}
	s, _ := b.open()
	_, err := b.prompt(s)
	requireEnded(t, err, 3)
	require.ErrorContains(t, err, "out of memory")
	require.Equal(t, `turn update {"update":{"n":"last"}}`, b.client.next(),
		"earlier updates are not lost")
	require.Equal(t, `host call session/request_permission {}`, b.client.next())

	// The next prompt restarts it, and it ends in the same way.
	_, err = b.prompt(s)
	requireEnded(t, err, 3)
	require.Equal(t, `turn update {"update":{"n":"last"}}`, b.client.next())
	require.Len(t, b.received("initialize"), 2)
	s.Notify(t.Context(), "_x/note", nil)
	b.backend.Notify(t.Context(), "_x/note", nil)
	s.Cancel(nil)
	require.NoError(t, s.Close(t.Context()))
	_, err = b.prompt(s)
	require.ErrorContains(t, err, "closed")
}

// An agent that crashes explains why, and the answer to a request does not speak of a session that
// does not exist.
func TestCrashExplained(t *testing.T) {
	stderr := filepath.Join(t.TempDir(), "stderr")
	require.NoError(t, os.WriteFile(stderr,
		[]byte("loaded 3 plugins\nat work\nTypeError: x is null\n    at f (a.js:1:2)\n\nNode.js "+
			"v22.23.3\n"), 0o600))
	crash := "stderr of " + stderr + "\nexit 1\n"
	const explained = "the agent scripted ended: exit status 1: TypeError: x is null\n    at f " +
		"(a.js:1:2)\nNode.js v22.23.3\n"
	const advice = "try again: it is restarted and the session continues; "
	const where = "run its command in a terminal to see more"
	for method, script := range map[string]string{
		"initialize":     "await initialize\n" + crash,
		"session/new":    plain + "await session/new\n" + crash,
		"session/prompt": plain + opened + "await session/prompt\n" + crash,
	} {
		t.Run(method, func(t *testing.T) {
			var log logtest.Text
			b := start(t, script, proxy.Options{Logger: log.Logger(slog.LevelWarn)})
			_, err := b.backend.Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`),
				b.client)
			if method != "initialize" {
				require.NoError(t, err)
				var s backend.Session
				s, _, err = b.backend.Open(t.Context(),
					backend.Activation{Cause: backend.New, Params: backend.Raw(`{"cwd":"/a"}`)},
					host{b.client})
				if method == "session/prompt" {
					require.NoError(t, err)
					_, err = b.prompt(s)
				}
			}
			expect := explained + where
			if method == "session/prompt" {
				expect = explained + advice + where
			}
			require.EqualError(t, err, expect)
			require.NoError(t, b.backend.Close(t.Context()))
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "one record: %s", log.String())
			require.Contains(t, log.String(),
				`msg="the agent ended unexpectedly" child=scripted status="exit status 1" `+
					`stderr="loaded 3 plugins\n`)
		})
	}
}

func TestOutputOfDyingChild(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nrepeat 2000 "+
		fmt.Sprintf(update, `{"n":$i}`)+"exit 3\n")
	blocked := make(chan struct{})
	b.client.block = func(context.Context, string) error {
		<-blocked
		return nil
	}
	s, _ := b.open()
	r := b.running(s)
	b.client.next()
	for range 100 { // it may have ended
		s.Notify(t.Context(), "_x/note", nil)
	}
	close(blocked)
	_, err := await(t, r.work)
	requireEnded(t, err, 3)
	for i := 1; i < 2000; i++ {
		require.Equal(t, fmt.Sprintf(`turn update {"update":{"n":%d}}`, i), b.client.next())
	}
}

func TestClosedOutput(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nclose\n")
	s, _ := b.open()
	_, err := b.prompt(s)
	var ended *child.EndedError
	require.ErrorAs(t, err, &ended)
	require.NoError(t, ended.Exit)
	require.ErrorContains(t, err, "exit status 0")
}

// What an agent prints beside its messages is in the log, without end only as a number.
func TestGarbageOnStdout(t *testing.T) {
	var log logtest.Text
	b := initialized(t, "send Welcome to the agent!\nsend [1,2]\n"+plain+
		"send \nsend {\"half\":\n"+opened+"await session/prompt\nsend null\nrepeat 20 loop $i\n"+
		"send "+fmt.Sprintf(update, `{"n":"good"}`)+answered,
		proxy.Options{Logger: log.Logger(slog.LevelWarn)})
	s, _ := b.open()
	_, err := b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":{"n":"good"}}`, b.client.next())
	require.NoError(t, b.backend.Close(t.Context()))
	require.Contains(t, log.String(), `msg="the agent wrote a line to stdout that is not a message" `+
		`child=scripted line="Welcome to the `)
	require.Equal(t, 5, log.Count("is not a message"))
	require.Contains(t, log.String(),
		`msg="the agent wrote lines to stdout that are not messages" child=scripted lines=24`)
}

// Clause W9.
func TestClose(t *testing.T) {
	var log logtest.Text
	b := initialized(t, capable+opened+"await session/close\n"+
		`refuse session/close {"code":-32002,"message":"unknown"}`+"\n",
		proxy.Options{Logger: log.Logger(slog.LevelInfo)})
	s, _ := b.open()
	require.NoError(t, s.Close(t.Context()), "an unknown session counts as closed")
	require.Len(t, b.received("session/close"), 1)
	require.NotContains(t, log.String(), "unexpectedly")
	_, err := await(t, b.backend.Call(t.Context(), "_x/any", nil))
	require.Error(t, err)
}

func TestAgentThatDoesNotRead(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nblock\n",
		proxy.Options{}.WithChild(child.Limits{
			MaxQueue: 1 << 10, ProcessGrace: time.Millisecond,
		}))
	s, _ := b.open()
	r := b.running(s)
	long := backend.Raw(`{"x":"` + strings.Repeat("x", 1<<16) + `"}`)
	for range 200 {
		s.Notify(t.Context(), "_x/note", long)
	}
	_, err := await(t, r.work)
	require.ErrorContains(t, err, "does not read")
	require.ErrorContains(t, err, "try again")
}

func TestPromptNotSent(t *testing.T) {
	reads := filepath.Join(t.TempDir(), "reads")
	b := initialized(t, plain+opened+"until "+reads+"\nsend "+fmt.Sprintf(update, `{"n":"later"}`),
		proxy.Options{}.WithChild(child.Limits{MaxQueue: 1 << 10}))
	s, _ := b.open()
	s.Notify(t.Context(), "_x/note", backend.Raw(`{"x":"`+strings.Repeat("x", 1<<20)+`"}`))
	_, err := b.prompt(s)
	require.ErrorIs(t, err, jsonrpc.ErrQueueFull)
	require.NoError(t, os.WriteFile(reads, nil, 0o600))
	require.Equal(t, `host update {"update":{"n":"later"}}`, b.client.next(),
		"updates after the failed turn are passed on")
}

// Clause P6.
func TestNotificationsToSlowAgent(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nnap\nawait _x/last\n"+answered,
		proxy.Options{}.WithChild(child.Limits{MaxQueue: 1 << 10}))
	s, _ := b.open()
	r := b.running(s)
	for i := range 100 {
		s.Notify(t.Context(), "_x/note", backend.Raw(`{"x":"`+strings.Repeat("x", 1<<10+i)+`"}`))
	}
	s.Notify(t.Context(), "_x/last", nil)
	_, err := await(t, r.work)
	require.NoError(t, err)
	got := b.received("_x/note")
	require.Len(t, got, 100)
	for i := 1; i < len(got); i++ {
		require.Greater(t, len(got[i]), len(got[i-1]))
	}
}

// The process that answered initialize has the old version; the one that is started with flags has
// a version that needs none.
func TestUpdatedAgent(t *testing.T) {
	h, v := connected(t, abilities{Load: true, Updated: true}, proxy.Options{Profile: flagged()})
	first := roots(t, 1)
	s := v.open(first)
	require.Equal(t, "agent N:one", v.prompt(s.ID, "one"))
	v.load(s.ID, first)
	require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"))
	alone := v.open(roots(t, 0))
	require.Equal(t, "agent N:one", v.prompt(alone.ID, "one"))
	require.Contains(t, h.way(s.ID), "by the protocol")
	require.Equal(t, []string{"", "--add-dir " + first.At(1).String()}, h.starts()[:2])
}

func TestRestartByPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		agent abilities
		want  string
	}{
		"it resumes":      {abilities{Resume: true}, "one+crash+two"},
		"it loads":        {abilities{Load: true}, "one+crash+two"},
		"both, and roots": {abilities{Load: true, Resume: true, Roots: true}, "one+crash+two"},
		"neither":         {abilities{}, "~one+~crash+two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, v := connected(t, c.agent, proxy.Options{}.WithChild(
				child.Limits{Backoff: time.Millisecond}))
			first := roots(t, 2)
			s := v.open(first)
			v.prompt(s.ID, "one")
			v.SetMode(t, s.ID, "plan")
			v.crash(s.ID)
			require.Equal(t, []string{"one", "N:one", "crash", "dying"}, h.history(s.ID),
				"no update is lost")
			require.Equal(t, "agent N:"+c.want, v.prompt(s.ID, "two"))
			require.Equal(t, "agent N:"+c.want+"+three", v.prompt(s.ID, "three"), "only once")
			v.disconnect()
			modes := 0
			for _, r := range h.received() {
				if r.method == "session/set_mode" {
					modes++
					require.Contains(t, r.params, `"modeId":"plan"`)
				}
			}
			require.Equal(t, 2, modes, "the agent is in the mode that the user sees")
		})
	}
}

func TestRestartRestoresMode(t *testing.T) {
	h, v := connected(t, abilities{Resume: true}, proxy.Options{})
	s := v.open(roots(t, 0))
	v.SetMode(t, s.ID, "plan")
	v.prompt(s.ID, "mode build")
	v.crash(s.ID)
	v.prompt(s.ID, "two")
	v.disconnect()
	var last string
	for _, r := range h.received() {
		if r.method == "session/set_mode" {
			last = r.params
		}
	}
	require.Contains(t, last, `"modeId":"build"`)
}

func TestRestartByRequest(t *testing.T) {
	h, v := connected(t, abilities{Resume: true}, proxy.Options{})
	s := v.open(roots(t, 0))
	require.NoError(t, v.Authenticate(t.Context(), "key"))
	v.crash(s.ID)
	require.Equal(t, `{}`, v.SetMode(t, s.ID, "plan"))
	require.NoError(t, v.Authenticate(t.Context(), "key"))
	v.disconnect()
	require.Equal(t, 3, strings.Count(strings.Join(methods(h.received()), " "), "authenticate"),
		"a restarted child is logged in again")
}

func TestCancelDuringRestart(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nexit 3\n")
	s, _ := b.open()
	_, err := b.prompt(s)
	requireEnded(t, err, 3)
	r := b.running(s)
	r.cancel("")
	result, err := await(t, r.work)
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"cancelled"}`, result)
	require.Len(t, b.received("session/prompt"), 1)
	require.Empty(t, b.received("session/cancel"))
}
