package acp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// patient is a scripted runtime whose Open, once it is told to wait, does so as long as it may.
type patient struct {
	scripted
	waits  bool
	opened chan *workspace.Workspace
}

func (r *patient) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	if r.waits {
		r.opened <- h.Workspace()
		<-ctx.Done()
		return nil, backend.Opened{}, context.Cause(ctx)
	}
	return r.scripted.Open(ctx, a, h)
}

func TestW6_CancelRequestEndsALifecycleRequestAtWork(t *testing.T) {
	r := &patient{opened: make(chan *workspace.Workspace)}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{MaxSessions: 2}))
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	for range 2 {
		for _, method := range opening {
			t.Run("W6/"+method, func(t *testing.T) {
				r.waits = true
				request, line := c.request(method, rootsParams(id, a, b))
				c.send(line)
				w := <-r.opened
				c.send(notification("$/cancel_request", `{"requestId":`+request+`}`))
				require.Equal(t, jsonrpc.CodeCancelled, c.response(request).Error.Code)
				r.waits = false
				_, err := w.Stat(b)
				require.ErrorIs(t, err, workspace.ErrClosed, "A5: it leaves nothing behind")
				require.Len(t, c.list(`{}`), 1)
				require.Equal(t, []string{"[" + a + "]"}, c.texts(id, "roots"), "A12: the session is as it was")
			})
		}
	}
}
