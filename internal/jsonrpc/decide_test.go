package jsonrpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// A response that waits for a peer that does not read is not decided before that reads.
func TestW5_AResponseIsDecidedWhenThereIsRoomForIt(t *testing.T) {
	const limit = 1 << 10
	var state atomic.Value
	writing, goOn, worked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p := serve(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
		if r.Method != "decided" {
			return func() (json.RawMessage, error) { return r.Params, nil }
		}
		r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
			if state.Load() == "panic" {
				panic("in decide")
			}
			return json.RawMessage(`["` + state.Load().(string) + `",` + string(result) + `]`), err
		})
		return func() (json.RawMessage, error) {
			close(worked)
			return json.RawMessage(`"worked"`), nil
		}
	}), jsonrpc.Options{MaxQueue: limit, Tap: func(d jsonrpc.Direction, line []byte) {
		if d == jsonrpc.Sent && len(line) > limit {
			writing <- struct{}{}
			<-goOn
		}
	}})
	full := `{"jsonrpc":"2.0","id":1,"method":"echo","params":["` + strings.Repeat("x", limit) + `"]}`
	decided := `{"jsonrpc":"2.0","id":2,"method":"decided"}`
	state.Store("too early")
	p.send(full)
	<-writing
	p.send(decided)
	<-worked
	state.Store("in time")
	goOn <- struct{}{}
	require.Contains(t, p.line(), "xxx")
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":["in time","worked"]}`, p.line())

	state.Store("panic")
	worked = make(chan struct{})
	p.send(decided)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"internal error"}}`, p.line())
	require.NoError(t, p.end())
}
