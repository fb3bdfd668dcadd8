package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestCallsOfOursAreSentInOrderAndMatchedById(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	first := p.conn.Call(t.Context(), "a", nil)
	second := p.conn.Call(t.Context(), "b", json.RawMessage(`[1]`))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"a"}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"b","params":[1]}`, p.line())
	p.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":[1, 2]}}`, `{"jsonrpc":"2.0","id":1,"result":{"x" : 1}}`)
	result, err := first()
	require.NoError(t, err)
	require.Equal(t, `{"x" : 1}`, string(result))
	_, err = second()
	var peers *jsonrpc.Error
	require.ErrorAs(t, err, &peers)
	require.Equal(t, &jsonrpc.Error{Code: -5, Message: "no", Data: json.RawMessage(`[1, 2]`)}, peers)
	require.Equal(t, "no (-5)", err.Error())
	require.NoError(t, p.end())
}

func TestW6_ACallWhoseContextEndsIsCancelledAtThePeer(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	work := p.conn.Call(ctx, "slow", nil)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"slow"}`, p.line())
	cancel(cause)
	_, err := work()
	require.ErrorIs(t, err, cause)
	require.Equal(t, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, p.line())

	_, err = p.conn.Call(ctx, "too late", nil)()
	require.ErrorIs(t, err, cause)

	// The late response is ignored, and nothing was sent for the second call.
	p.send(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":7,"method":"echo"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{}}`, p.line())
	require.NoError(t, p.end())
}

func TestW6_ACancelledRequestAnswersItsCancellationWhateverItsError(t *testing.T) {
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) {
			<-ctx.Done()
			return nil, jsonrpc.Errorf(-32000, "aborted")
		}
	}), jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"request cancelled"}}`, p.line())
	require.NoError(t, p.end())
}

func TestAContextEndsWhenItsRequestWasAnswered(t *testing.T) {
	contexts := make(chan context.Context, 1)
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		contexts <- ctx
		return func() (json.RawMessage, error) { return nil, nil }
	}), jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	p.line()
	receive(t, receive(t, contexts).Done())
	require.NoError(t, p.end())
}
