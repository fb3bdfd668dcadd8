package jsonrpc_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// counted is a Budget of some bytes.
type counted struct {
	mu   sync.Mutex
	left int
}

func (b *counted) Reserve(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *counted) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// Unanswered requests have a budget together with other connections, and give it back.
//
// Clause N6.
func TestBudgetOfRequests(t *testing.T) {
	t.Parallel()
	b := &counted{left: 1000}
	p := serve(t, &responder{}, jsonrpc.Options{Budget: b})
	large := `{"x":"` + strings.Repeat("x", 600) + `"}`
	request := func(id, method string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + large + `}`
	}
	p.send(request("1", "wait"), request("2", "wait"))
	require.Contains(t, p.line(), `"id":2,"error":{"code":-32603,"message":"the request has 612 bytes`)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"echo","params":{}}`)
	require.Contains(t, p.line(), `"id":3,"result"`)
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Contains(t, p.line(), `"id":1,"error"`)
	p.send(request("4", "echo"))
	require.Contains(t, p.line(), `"id":4,"result"`)
	p.send(request("5", "wait"))
	require.NoError(t, p.in.Close())
	require.Contains(t, p.rest(), `"id":5,"error"`)
	require.NoError(t, p.end())
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, 1000, b.left)
}
