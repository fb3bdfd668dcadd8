package proxy_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

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
			h, v := connected(t, c.agent, proxy.Options{}.With(
				proxy.Limits{Backoff: time.Millisecond}))
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

func TestBackoff(t *testing.T) {
	var log logtest.Text
	b := start(t, "exit 4\n", proxy.Options{Logger: log.Logger(slog.LevelInfo)}.With(
		proxy.Limits{Backoff: time.Millisecond}))
	for range 4 {
		_, err := b.backend.Initialize(t.Context(), backend.Raw(`{}`), b.client)
		require.ErrorContains(t, err, "exit status 4")
	}
	require.Contains(t, log.String(), "waiting before the next start")
	require.Contains(t, log.String(), "delay=1ms")
	require.Contains(t, log.String(), "delay=2ms")
}
