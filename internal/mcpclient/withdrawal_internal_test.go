package mcpclient

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestAWithdrawalIsOverWhenItsNoticeWasWritten(t *testing.T) {
	l := newLines(io.NopCloser(bytes.NewReader(nil)), discard{io.Discard}, Options{MaxMessage: 1 << 20}, quiet())
	defer func() {
		require.NoError(t, l.Close())
		l.writer.Wait()
	}()
	w := newWithdrawal()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.in(t.Context())), time.Minute)
	defer cancel()
	over := func() bool {
		select {
		case <-w.sent:
			return true
		default:
			return false
		}
	}
	require.NoError(t, l.Write(ctx, &jsonrpc.Request{Method: "tools/call"}))
	require.False(t, over())
	require.NoError(t, l.Write(t.Context(), &jsonrpc.Request{Method: "notifications/cancelled"}))
	require.False(t, over(), "it is another call's")
	for range 2 {
		require.NoError(t, l.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled"}))
		require.True(t, over())
	}
	w.wait(nil)
	ended := make(chan struct{})
	close(ended)
	newWithdrawal().wait(ended)
	newWithdrawal().wait(nil) // a server that does not read is not waited for
}
