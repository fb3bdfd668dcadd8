package proxy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
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

const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":%s}}` + "\n"

func TestW6_Cancel(t *testing.T) {
	for _, params := range []string{`{"_meta":{"n":1.0}}`, ``} {
		t.Run("params "+params, func(t *testing.T) {
			b := initialized(t, plain+opened+"await session/prompt\nawait session/cancel\nsend "+fmt.Sprintf(update, `{"n":"last"}`)+
				`send {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"cancelled","n":1.0}}`+"\n",
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
				want = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"child-1","_meta":{"n":1.0}}}`
			}
			require.Equal(t, []string{want}, b.received("session/cancel", "$/cancel_request"))
		})
	}
}

func TestW3_LongResponseFailsThePrompt(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+`send {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"$long$"}}`+"\n", proxy.Options{})
	s, _ := b.open()
	_, err := await(t, b.running(s).work)
	require.ErrorContains(t, err, "longer than the limit of 67108864 bytes")
}

func TestW5_CancelFollowsPrompt(t *testing.T) {
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

func TestW6_CancelWithoutAnswer(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\nawait session/cancel\nawait $/cancel_request\n"+
		"send "+fmt.Sprintf(update, `{"n":"late"}`)+
		`send {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"end_turn"}}`+"\n"+
		"await session/prompt\nsend "+fmt.Sprintf(update, `{"n":"next"}`)+answered, proxy.Options{}.With(proxy.Limits{CancelGrace: 1}))
	s, _ := b.open()
	b.client.block = func(_ context.Context, note string) error { // as package acp does after the response
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
	require.Equal(t, `turn update {"update":{"n":"late"}}`, b.client.next(), "sent to the turn only")
	_, err = b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `turn update {"update":{"n":"next"}}`, b.client.next())
	b.client.silent()
}

func TestUpdateAfterTurn(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+answered+"send "+fmt.Sprintf(update, `{"n":"after"}`), proxy.Options{})
	s, _ := b.open()
	_, err := b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `host update {"update":{"n":"after"}}`, b.client.next())
}

func TestW11_SlowClient(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+
		"repeat 3 "+fmt.Sprintf(update, `{"n":$i}`)+
		"await session/cancel\n"+answered, proxy.Options{}.With(proxy.Limits{CancelGrace: patience}))
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
