package mcpclient

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// withdrawal is the notice to a process that a call was given up. The SDK sends it after the call has returned; a turn is
// over only when its calls are, and what the server is told next must not come before it.
type withdrawal struct {
	once sync.Once
	sent chan struct{} // closed when the notice was written, or could not be
}

func newWithdrawal() *withdrawal { return &withdrawal{sent: make(chan struct{})} }

// withdrawalKey is the key of a call's withdrawal in the context that its messages are written with.
type withdrawalKey struct{}

func (w *withdrawal) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, withdrawalKey{}, w)
}

// noteWithdrawal notes that m was written.
func noteWithdrawal(ctx context.Context, m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	if !ok || r.Method != "notifications/cancelled" {
		return
	}
	if w, ok := ctx.Value(withdrawalKey{}).(*withdrawal); ok {
		w.once.Do(func() { close(w.sent) })
	}
}

// withdrawalTimeout is how long a server that reads slowly is waited for.
const withdrawalTimeout = 100 * time.Millisecond

// wait waits until the notice was written, ended is closed, or it has taken too long.
func (w *withdrawal) wait(ended <-chan struct{}) {
	timer := time.NewTimer(withdrawalTimeout)
	defer timer.Stop()
	select {
	case <-w.sent:
	case <-ended:
	case <-timer.C:
	}
}
