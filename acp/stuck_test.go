package acp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// stuck is a scripted runtime that hangs in the first half of the prompt "stuck", until hold is closed.
type stuck struct {
	scripted
	in, hold chan struct{}
}

func (r *stuck) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	s, opened, err := r.scripted.Open(ctx, a, h)
	return &stuckSession{s, r}, opened, err
}

type stuckSession struct {
	backend.Session
	runtime *stuck
}

func (s *stuckSession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	if strings.Contains(string(params), `"stuck"`) {
		s.runtime.in <- struct{}{}
		<-s.runtime.hold
	}
	return s.Session.Prompt(ctx, params, u)
}

func TestW5_ARuntimeThatHangsWhenItIsGivenAPromptHoldsUpNobodyElse(t *testing.T) {
	r := &stuck{in: make(chan struct{}, 1), hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{CancelGrace: 10 * time.Millisecond}))
	c.initialize()
	a := folder(t)
	id, other := c.open(a), c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "stuck"))
	c.send(line)
	<-r.in
	call, line := c.request("session/set_mode", idParams(id))
	c.send(line, notification("session/cancel", idParams(id)))
	require.Equal(t, []string{"x"}, c.texts(other, "say x"), "the cancel holds up nobody")
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t), "the turn ends with its grace")
	require.NotContains(t, r.noted(), "cancel {}", "it is told once it has the prompt")
	close(r.hold)
	require.Nil(t, c.response(call).Error)
	require.Equal(t, []string{"y"}, c.texts(id, "say y"))
	told := strings.Join(r.noted(), "\n")
	require.Contains(t, told, "prompt stuck\ncancel {}\n", "of its end, behind the prompt and before anything else")
	require.Equal(t, 1, strings.Count(told, "cancel"))
}
