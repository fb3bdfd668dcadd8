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

// asker writes a question as soon as one is read, without end.
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

// answered has each question answered on a goroutine of its own, as the SDK does, until the connection ends.
func answered(t *testing.T, l *lines) (questions int, err error) {
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

func TestHostileAServerThatAsksAndDoesNotRead(t *testing.T) {
	nobody, out := io.Pipe()
	defer nobody.Close()
	l := newLines(io.NopCloser(&asker{}), out, Options{MaxMessage: 100, MaxQuestions: 20, SettleMax: 10 * time.Millisecond}, quiet())
	l.legacy.Store(true)
	n, err := answered(t, l)
	var unread *UnreadError
	require.ErrorAs(t, err, &unread)
	require.Equal(t, UnreadError{Questions: 20, Bound: 10 * time.Millisecond}, *unread)
	require.Equal(t, 20, n)
	l.writer.Wait()
}

func TestAServerThatReadsMayAskOn(t *testing.T) {
	in, out := io.Pipe()
	l := newLines(io.NopCloser(io.LimitReader(&asker{}, 1<<16)), out, Options{MaxMessage: 100, MaxQuestions: 2, SettleMax: time.Minute}, quiet())
	l.legacy.Store(true)
	go func() { _, _ = io.Copy(io.Discard, in) }()
	n, err := answered(t, l)
	require.ErrorIs(t, err, io.EOF)
	require.Greater(t, n, 1000)
	l.writer.Wait()
}

func TestAQuestionTwiceCountsOnce(t *testing.T) {
	q := newQuestions(Options{MaxQuestions: 2, SettleMax: time.Minute})
	a, err := jsonrpc.MakeID("a")
	require.NoError(t, err)
	q.add(a)
	q.add(a)
	require.NoError(t, q.room(nil))
	q.taken(a)
	require.Empty(t, q.open)
}
