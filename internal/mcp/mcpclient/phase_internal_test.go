package mcpclient

import (
	"errors"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNextAttempt(t *testing.T) {
	l := limits{Backoff: time.Second, MaxRestarts: 5}
	lost := &transportError{fault: lostSession}
	for name, c := range map[string]struct {
		failures int
		end      ending
		want     step
	}{
		"first failure":           {0, ending{err: errNotMCP}, step{1, time.Second, false}},
		"too many":                {5, ending{err: errNotMCP}, step{6, maxBackoff, true}},
		"soon after the start":    {3, ending{err: errStopped, age: time.Second}, step{4, 8 * time.Second, false}},
		"long after the start":    {3, ending{err: errStopped, age: stableAfter}, step{1, time.Second, false}},
		"after an answer":         {3, ending{errStopped, true, time.Second}, step{1, time.Second, false}},
		"restart":                 {3, ending{err: errReconnect, age: time.Second}, step{}},
		"lost session":            {3, ending{lost, true, time.Second}, step{}},
		"lost before an answer":   {3, ending{err: lost, age: time.Second}, step{4, 8 * time.Second, false}},
		"no command":              {0, ending{err: &exec.Error{Name: "x", Err: exec.ErrNotFound}}, step{1, time.Second, true}},
		"not signed in":           {0, ending{err: &authorizationError{errAskedAgain}}, step{1, time.Second, true}},
		"asks for the next later": {0, ending{err: &transportError{fault: refused, code: 503, later: time.Hour}}, step{1, time.Hour, false}},
		"refuses":                 {0, ending{err: &transportError{fault: refused, code: 403}}, step{1, time.Second, true}},
	} {
		require.Equal(t, c.want, l.next(c.failures, c.end), name)
	}
}

// While a server is started again, its status says why it failed before.
func TestStatusAfterFailure(t *testing.T) {
	s := &server{ctx: t.Context(), changed: make(chan struct{})}
	for _, p := range []phase{waiting{}, failed{}} {
		s.failure = errors.New("it exited")
		s.enter(p)
		require.EqualError(t, s.status().Err, "it exited")
		s.enter(starting("it has not answered yet"))
		const expected = "it has not answered yet; the last attempt failed: "
		require.Equal(t, expected+"`it exited`", s.status().Waiting)
		require.NoError(t, s.status().Err)
		require.EqualError(t, explain(errors.New("too late"), s.phase, s.failure), "too late: "+expected+"it exited")

		s.failure = nil // it was connected
		s.enter(restarting)
		require.Equal(t, "it is being restarted", s.status().Waiting)
		require.EqualError(t, explain(errors.New("too late"), s.phase, s.failure), "too late: it is being restarted")
	}
}

// A server that asks to sign in has no page at first.
func TestStatusOfSignIn(t *testing.T) {
	one := &authorization{}
	s := &server{ctx: t.Context(), phase: signingIn{one}}
	require.Equal(t, "it has not said yet where to sign in", s.status().Waiting)
	one.page.Store(&url.URL{Scheme: "https", Host: "example.com", Path: "/a"})
	require.Equal(t, "it waits until you have signed in at example.com: "+OpenPage("https://example.com/a"), s.status().Waiting)
}
