package child

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// named is a recipient that answers with its name.
type named string

func (n named) Deliver(Message) (backend.Work, error) {
	return func() (backend.Raw, error) { return backend.Raw(n), nil }, nil
}

func (n named) IsRunning() bool { return n == "running" }

// A request about an unknown session is answered, also while another is created.
func TestRequestsForUnknownSessions(t *testing.T) {
	r := &Router{log: slog.New(slog.DiscardHandler), routes: make(map[string]Recipient),
		limits: Limits{MaxHeld: 1, MaxHeldBytes: 100}}
	answers := make(chan backend.Work, 1)
	ask := func(id string) { r.route(Message{Ctx: t.Context(), id: id, answer: answers}) }
	requireAnswer := func(want string) {
		t.Helper()
		require.Len(t, answers, 1)
		result, err := (<-answers)()
		require.Equal(t, want, string(result))
		require.Equal(t, want == "", err != nil)
	}
	ask("a")
	requireAnswer("")
	require.True(t, r.Add("a", named("idle")))
	require.False(t, r.Add("a", named("other")))
	require.False(t, r.hasRunning())
	ask("a")
	requireAnswer("idle")
	r.Remove(func(to Recipient) bool { return to == named("idle") })

	end, last := r.Hold(), r.Hold()
	ask("a")
	require.Empty(t, answers, "it is held")
	ask("b")
	requireAnswer("") // too many are held
	require.True(t, r.Add("a", named("running")))
	require.True(t, r.hasRunning())
	r.DeliverHeld("a")
	requireAnswer("running")
	r.limits = Limits{MaxHeld: 9, MaxHeldBytes: 2}
	r.route(Message{Ctx: t.Context(), id: "b", Params: backend.Raw(`{"n":1}`), answer: answers})
	requireAnswer("") // it is too long
	ask("b")
	end()
	require.Empty(t, answers)
	last()
	requireAnswer("")
}
