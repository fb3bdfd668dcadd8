package mcpclient

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// asker yields requests without end.
type asker struct {
	n    int
	rest []byte
}

func (a *asker) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		a.n++
		a.rest = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", a.n)
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// answered answers each request on its own goroutine, as the MCP SDK does, until the connection
// ends.
func answered(t *testing.T, l *stdioTransport) (questions int, err error) {
	var answering sync.WaitGroup
	defer answering.Wait()
	for ; ; questions++ {
		m, err := l.Read(t.Context())
		if err != nil {
			return questions, err
		}
		id := m.(*jsonrpc.Request).ID
		answering.Go(func() { _ = l.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}) })
	}
}

func TestServerTakesNoAnswers(t *testing.T) {
	unread, out := io.Pipe()
	defer unread.Close()
	l := newStdioTransport(newInbox(limits{MaxMessage: 100, MaxRequests: 20, SettleMax: 10 * time.Millisecond}, quiet(), nil), io.NopCloser(&asker{}), out)
	n, err := answered(t, l)
	require.EqualError(t, err, "it sent 20 requests and read no answers within 10ms")
	require.Equal(t, 20, n)
	l.writer.Wait()
}

func TestServerTakesAnswers(t *testing.T) {
	in, out := io.Pipe()
	l := newStdioTransport(newInbox(limits{MaxMessage: 100, MaxRequests: 2, SettleMax: time.Minute}, quiet(), nil), io.NopCloser(io.LimitReader(&asker{}, 1<<16)), out)
	go func() { _, _ = io.Copy(io.Discard, in) }()
	n, err := answered(t, l)
	require.ErrorIs(t, err, io.EOF)
	require.Greater(t, n, 1000)
	l.writer.Wait()
}
