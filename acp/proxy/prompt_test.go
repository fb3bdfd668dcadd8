package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// running is a turn that the test can cancel, as package acp does.
type running struct {
	work   backend.Work
	cancel func(params string)
}

func (b *proxyTest) running(s backend.Session) running {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(b.t.Context()))
	b.t.Cleanup(func() { stop(backend.ErrTurnOver) })
	work := s.Prompt(ctx, backend.Raw(`{"prompt":[]}`), turn{b.client})
	return running{work, func(params string) {
		stop(backend.ErrCancelled)
		s.Cancel(backend.Raw(params))
	}}
}

const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1",` +
	`"update":%s}}` + "\n"

// Clause W6.
func TestCancel(t *testing.T) {
	for _, params := range []string{`{"_meta":{"n":1.0}}`, ``} {
		t.Run("params "+params, func(t *testing.T) {
			b := initialized(t, plain+opened+"await session/prompt\nawait session/cancel\nsend "+
				fmt.Sprintf(update, `{"n":"last"}`)+
				`answer session/prompt {"stopReason":"cancelled","n":1.0}`+"\n",
				proxy.Options{}.With(proxy.Limits{CancelGrace: patience}))
			s, _ := b.open()
			r := b.running(s)
			r.cancel(params)
			result, err := await(t, r.work)
			require.NoError(t, err)
			require.Equal(t, `{"stopReason":"cancelled","n":1.0}`, result)
			require.Equal(t, `turn update {"update":{"n":"last"}}`, b.client.next())
			want := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"child-1"}}`
			if params != "" {
				want = `{"jsonrpc":"2.0","method":"session/cancel",` +
					`"params":{"sessionId":"child-1","_meta":{"n":1.0}}}`
			}
			require.Equal(t, []string{want}, b.received("session/cancel", "$/cancel_request"))
		})
	}
}

// Clause W3.
func TestLongResponseFailsThePrompt(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+
		`answer session/prompt {"stopReason":"$long$"}`+"\n")
	s, _ := b.open()
	_, err := await(t, b.running(s).work)
	require.ErrorContains(t, err, "longer than the limit of 67108864 bytes")
}

// Clause W5.
func TestCancelFollowsPrompt(t *testing.T) {
	b := initialized(t, plain+opened, proxy.Options{}.With(proxy.Limits{CancelGrace: 1}))
	s, _ := b.open()
	for range 100 {
		r := b.running(s)
		r.cancel("")
		_, err := await(t, r.work)
		require.NoError(t, err)
	}
	got := b.received("session/prompt", "session/cancel")
	require.Len(t, got, 200)
	for i := 0; i < len(got); i += 2 {
		require.Contains(t, got[i], "session/prompt")
		require.Contains(t, got[i+1], "session/cancel")
	}
}

// Clause W6.
func TestCancelWithoutAnswer(t *testing.T) {
	b := initialized(t, plain+opened+
		"await session/prompt\nawait session/cancel\nawait $/cancel_request\n"+
		"send "+fmt.Sprintf(update, `{"n":"late"}`)+
		`answer session/prompt {"stopReason":"end_turn"}`+"\n"+
		"await session/prompt\nsend "+fmt.Sprintf(update, `{"n":"next"}`)+answered,
		proxy.Options{}.With(proxy.Limits{CancelGrace: 1}))
	s, _ := b.open()
	// as package acp does after the response
	b.client.block = func(_ context.Context, note string) error {
		if note == `turn update {"update":{"n":"late"}}` {
			return backend.ErrTurnOver
		}
		return nil
	}
	r := b.running(s)
	r.cancel("")
	result, err := await(t, r.work)
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"cancelled"}`, result)
	require.Equal(t, `turn update {"update":{"n":"late"}}`, b.client.next(),
		"sent to the turn only")
	_, err = b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":{"n":"next"}}`, b.client.next())
	b.client.silent()
}

// Clause W11.
func TestSlowClient(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+
		"repeat 3 "+fmt.Sprintf(update, `{"n":$i}`)+
		"await session/cancel\n"+answered,
		proxy.Options{}.With(proxy.Limits{CancelGrace: patience}))
	reads := make(chan struct{})
	b.client.block = func(ctx context.Context, _ string) error {
		select {
		case <-reads:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s, _ := b.open()
	r := b.running(s)
	require.Equal(t, `turn update {"update":{"n":0}}`, b.client.next())
	r.cancel("") // passed on to the child meanwhile
	b.client.silent()
	close(reads)
	_, err := await(t, r.work)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":{"n":1}}`, b.client.next())
	require.Equal(t, `turn update {"update":{"n":2}}`, b.client.next())
}

// overlap connects a client with an agent that follows the script once its session is open, and
// sends it a second prompt when the first has said something. It returns how they ended, what the
// client was shown, the stored history and what the agent received.
func overlap(
	t *testing.T, script string, during func(c *testClient, session string,
		second context.CancelFunc),
) (ends []string, shown, history, received []string) {
	t.Helper()
	command, record := scripted.Command(t, plain+opened+script)
	store := memstore.New(t)
	var mu sync.Mutex
	began := make(chan struct{})
	c := through(t, command, store, client.Options{
		Updates: func(_ context.Context, u client.Update) {
			var chunk struct{ Content struct{ Text string } }
			_ = json.Unmarshal(u.Update, &chunk)
			mu.Lock()
			defer mu.Unlock()
			if u.Kind != "agent_message_chunk" {
				return
			}
			if shown = append(shown, chunk.Content.Text); len(shown) == 1 {
				close(began)
			}
		}})
	s, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, 0)})
	require.NoError(t, err)
	ends = make([]string, 2)
	var turns sync.WaitGroup
	prompt := func(ctx context.Context, i int, text string) {
		turns.Go(func() {
			end, err := c.Prompt(ctx, s.ID, sdk.TextBlock(text))
			if ends[i] = string(end.StopReason); err != nil {
				ends[i] = err.Error()
			}
		})
	}
	prompt(t.Context(), 0, "one")
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	prompt(ctx, 1, "two")
	if during != nil {
		require.Eventually(t, func() bool { return len(linesOf(t, record, "session/prompt")) == 2 },
			patience, time.Millisecond)
		stored, err := store.Get(t.Context(), sessionstore.ID(s.ID))
		require.NoError(t, err)
		require.EqualValues(t, 2, stored.Turns, "S8: both are stored before the agent acts")
		during(c, s.ID, cancel)
	}
	turns.Wait()
	for u, err := range sessionstore.WithoutEnds(store.History(t.Context(), sessionstore.ID(s.ID))) {
		require.NoError(t, err)
		var p struct {
			Update struct{ Content struct{ Text string } }
		}
		require.NoError(t, json.Unmarshal(u.Raw, &p))
		history = append(history, p.Update.Content.Text)
	}
	stored, err := store.Get(t.Context(), sessionstore.ID(s.ID))
	require.NoError(t, err)
	require.EqualValues(t, 2, stored.Turns)
	// Nothing is left open: a fork has both turns. The client does not wait for the end of a turn
	// whose request it cancelled.
	forks := 0
	require.Eventually(t, func() bool {
		forks++
		id := sessionstore.ID(fmt.Sprint("fork-", forks))
		_, err := store.Fork(context.Background(), stored.ID,
			sessionstore.Session{ID: id, Agent: stored.Agent, Keys: stored.Keys})
		if !assert.NoError(t, err) {
			return false
		}
		forked, err := store.Get(context.Background(), id)
		return assert.NoError(t, err) && forked.Turns == 2
	}, patience, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	return ends, slices.Clone(shown), history,
		linesOf(t, record, "session/cancel", "$/cancel_request")
}

// Clause W7.
func TestPromptDuringATurn(t *testing.T) {
	says := func(text string) string {
		return "send " + fmt.Sprintf(update,
			`{"sessionUpdate":"agent_message_chunk","messageId":"`+text+
				`","content":{"type":"text","text":"`+text+`"}}`)
	}
	const (
		prompts = "await session/prompt\n"
		ends    = `send {"jsonrpc":"2.0","id":%d,"result":{"stopReason":"%s"}}` + "\n"
	)
	t.Run("queued by the agent", func(t *testing.T) {
		ended, shown, history, _ := overlap(t,
			prompts+says("a")+prompts+says("b")+fmt.Sprintf(ends, 3, "end_turn")+
				says("c")+fmt.Sprintf(ends, 4, "max_tokens"), nil)
		require.Equal(t, []string{"end_turn", "max_tokens"}, ended)
		require.Equal(t, []string{"a", "b", "c"}, shown)
		require.Equal(t, []string{"one", "a", "two", "b", "c"}, history)
	})
	t.Run("ends the first", func(t *testing.T) {
		ended, shown, history, _ := overlap(t,
			prompts+says("a")+prompts+fmt.Sprintf(ends, 3, "cancelled")+
				says("b")+fmt.Sprintf(ends, 4, "end_turn"), nil)
		require.Equal(t, []string{"cancelled", "end_turn"}, ended)
		require.Equal(t, []string{"a", "b"}, shown)
		require.Equal(t, []string{"one", "a", "two", "b"}, history)
	})
	t.Run("refused by the agent", func(t *testing.T) {
		ended, shown, history, _ := overlap(t, prompts+says("a")+prompts+
			`send {"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"busy with the first"}}`+
			"\n"+
			says("b")+fmt.Sprintf(ends, 3, "end_turn"), nil)
		require.Equal(t, "end_turn", ended[0])
		require.Contains(t, ended[1], "busy with the first")
		require.Equal(t, []string{"a", "b"}, shown)
		require.Equal(t, []string{"one", "a", "two", "b"}, history)
	})
	t.Run("both are cancelled", func(t *testing.T) {
		ended, shown, _, received := overlap(t, prompts+says("a")+prompts+"await session/cancel\n"+
			says("b")+fmt.Sprintf(ends, 3, "cancelled")+fmt.Sprintf(ends, 4, "cancelled"),
			func(c *testClient, session string, _ context.CancelFunc) {
				require.NoError(t, c.Cancel(t.Context(), session))
			})
		require.Equal(t, []string{"cancelled", "cancelled"}, ended)
		require.Equal(t, []string{"a", "b"}, shown)
		require.Equal(t, []string{
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"child-1"}}`},
			received, "once")
	})
	t.Run("one is cancelled", func(t *testing.T) {
		ended, shown, _, received := overlap(t,
			prompts+says("a")+prompts+"await $/cancel_request\n"+
				says("b")+fmt.Sprintf(ends, 3, "end_turn"),
			func(_ *testClient, _ string, second context.CancelFunc) {
				second()
			})
		require.Equal(t, "end_turn", ended[0])
		require.Equal(t, []string{"a", "b"}, shown)
		require.Len(t, received, 1, "the other one goes on")
		require.Contains(t, received[0], `"requestId":4`)
	})
}

// The second prompt is not sent before the first, nor twice what the child must be told.
//
// Clause W7.
func TestPromptsForARestartedAgent(t *testing.T) {
	h, v := connected(t, abilities{}, proxy.Options{})
	s := v.open(roots(t, 1))
	v.prompt(s.ID, "zero")
	v.crash(s.ID)
	var turns sync.WaitGroup
	for _, word := range []string{"one", "two", "three"} {
		sent := v.Call(t.Context(), "session/prompt", backend.Encode(map[string]any{
			"sessionId": s.ID, "prompt": []sdk.ContentBlock{sdk.TextBlock(word)},
		}))
		turns.Go(func() {
			_, err := sent()
			assert.NoError(t, err)
		})
	}
	turns.Wait()
	prompts := h.prompts()
	require.Len(t, prompts, 5)
	require.Equal(t, []string{"one", "two", "three"},
		[]string{prompts[2][0], prompts[3][0], prompts[4][0]})
	require.Len(t, prompts[2], 2)
	require.Contains(t, prompts[2][1], "user:\n> zero")
}

// All of them are in the history already, but the agent is about to be sent them.
//
// Clause P7.
func TestWaitingPromptsAreNotTold(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nexit 3\n",
		proxy.Options{}.WithChild(child.Limits{Backoff: time.Millisecond}))
	history := func(yield func(backend.Update, error) bool) {
		for _, word := range []string{"zero", "one", "two"} {
			update := backend.NewUpdate(sdk.UpdateUserMessageText(word))
			if !yield(update, nil) {
				return
			}
		}
	}
	s, _, err := b.backend.Open(t.Context(),
		backend.Activation{Cause: backend.New, Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`),
			History: history}, host{b.client})
	require.NoError(t, err)
	prompt := func(word string) backend.Work {
		return s.Prompt(t.Context(), backend.Raw(`{"prompt":[{"type":"text","text":"`+word+`"}]}`),
			turn{b.client})
	}
	_, err = await(t, prompt("zero"))
	requireEnded(t, err, 3)
	one, two := prompt("one"), prompt("two")
	_, err = await(t, one)
	requireEnded(t, err, 3)
	_, err = await(t, two)
	requireEnded(t, err, 3)
	require.Contains(t, b.received("session/prompt")[1],
		`oldest first:\nuser:\n\u003e zero\n\nThe last turn has no answer.\nEnd of the record`)
}
