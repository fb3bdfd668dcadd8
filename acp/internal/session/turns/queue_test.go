package turns_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is a session whose backend notes what it is told.
type session struct {
	backend.Session
	told []string
}

func (s *session) WithBackend(do func(backend.Session)) { do(s) }

func (s *session) prompt(backend.Session) backend.Work {
	s.told = append(s.told, "prompt")
	return nil
}

func (s *session) Cancel(backend.Raw) { s.told = append(s.told, "cancel") }

// A turn goes on until its response is decided, and counts until then.
//
// Clause A32.
func TestTurnsThatGoOn(t *testing.T) {
	var queues turns.Queues[session]
	s, running := &session{}, turns.New(t.Context())
	at, err := queues.PromptTicket("s", "", running, 1)
	require.NoError(t, err)
	require.True(t, at.Queue.Activate(s))
	_, err = at.AwaitTurn(true, 1)
	require.NoError(t, err)
	running.Start(s, s.prompt)
	at.Release()
	require.True(t, running.RunsIn(s))
	require.True(t, at.Queue.Runs())
	_, err = queues.PromptTicket("s", "", turns.New(t.Context()), 1)
	require.ErrorAs(t, err, new(*turns.TooManyError))

	running.Run(tasks.NewGroup(slog.New(slog.DiscardHandler)), 0, jsonrpc.Fail(nil))
	require.True(t, running.IsOver())
	running.Decide()
	running.End(backend.ErrCancelled)
	require.NoError(t, running.Cause())
	require.True(t, running.IsDecided())
	require.False(t, at.Queue.Runs(), "its response is on the way")
	require.Equal(t, []*turns.Turn{running}, at.Queue.Unanswered())
	at.Answered()
	require.Equal(t, []string{"prompt"}, s.told)
}

// Prompts that wait for an exclusive turn run in their order, although they could overlap.
//
// Clause A32.
func TestPromptsDoNotOvertakeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queues turns.Queues[session]
		var begun []int
		all := make([]turns.PromptTicket[session], 3)
		for i := range all {
			at, err := queues.PromptTicket("s", "", turns.New(t.Context()), 0)
			require.NoError(t, err)
			all[i] = at
			go func() {
				if _, err := at.AwaitTurn(i == 0, 0); err == nil {
					begun = append(begun, i)
				}
				at.Release()
			}()
			synctest.Wait()
		}
		for i, one := range all {
			require.Equal(t, []int{0, 1, 2}[:i+1], begun)
			one.Answered()
			synctest.Wait()
		}
	})
}

// A turn that goes on when another one begins still overlaps it if it is told to end while that one
// waits for a third.
//
// Clause A32.
func TestTurnToldToEndOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queues turns.Queues[session]
		var all [3]*turns.Turn
		var at [3]turns.PromptTicket[session]
		begin := func(i int) (overlaps bool) {
			var err error
			all[i] = turns.New(t.Context())
			at[i], err = queues.PromptTicket("s", "", all[i], 0)
			require.NoError(t, err)
			overlaps, err = at[i].AwaitTurn(false, 0)
			require.NoError(t, err)
			at[i].Release()
			return overlaps
		}
		require.False(t, begin(0))
		require.True(t, begin(1))
		all[1].End(backend.ErrCancelled)
		overlaps := make(chan bool, 1)
		go func() { overlaps <- begin(2) }()
		synctest.Wait()
		all[0].End(backend.ErrCancelled)
		at[1].Answered()
		require.True(t, <-overlaps)
	})
}

// A prompt that was cancelled before the backend had it is never given to it.
func TestCancelledTurnsDoNotStart(t *testing.T) {
	var queues turns.Queues[session]
	s, running, waiting := &session{}, turns.New(t.Context()), turns.New(t.Context())
	at, err := queues.PromptTicket("s", "", running, 0)
	require.NoError(t, err)
	_, err = at.AwaitTurn(false, 0)
	require.NoError(t, err)
	running.Start(s, s.prompt)
	_, err = queues.PromptTicket("s", "", waiting, 0)
	require.NoError(t, err)

	at.Queue.Cancel(nil, func(any) bool { return true })
	_, err = waiting.Start(s, s.prompt)()
	require.Error(t, err)
	require.Equal(t, []string{"prompt", "cancel"}, s.told)
	completed := turns.Outcome{Result: backend.Raw(`{"stopReason":"end_turn"}`)}
	running.Finish(completed)
	require.Equal(t, `{"stopReason":"cancelled"}`, string(running.Decide().Result))
}

// Prompts that wait for a client that joins do not count for others, but for that client.
func TestPromptsBehindAJoin(t *testing.T) {
	var queues turns.Queues[session]
	load := queues.Ticket("s", turns.Lifecycle, "a")
	require.True(t, load.Queue.Activate(&session{}))
	prompt := func(from string) error {
		_, err := queues.PromptTicket("s", from, turns.New(t.Context()), 1)
		return err
	}
	require.NoError(t, prompt("a"))
	require.True(t, load.Queue.IsOpening("a"))
	require.False(t, load.Queue.IsOpening("b"))
	load.StepAside()
	require.Error(t, prompt("a"))
	require.NoError(t, prompt("b"))
	load.Release()
	require.Error(t, prompt("b"))
}
