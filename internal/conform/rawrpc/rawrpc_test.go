package rawrpc_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func never(rawrpc.Message) bool { return false }

// Both sides are recorded, also lines that are no messages, and one without a newline at the end.
func TestRecord(t *testing.T) {
	answers, out := io.Pipe()
	c := rawrpc.New(answers, io.Discard, 0)
	go func() {
		_, _ = io.WriteString(out, "rubbish\n"+`{"jsonrpc":"2.0","id":1,"result":{"a":2}}`+"\n"+strings.Repeat("x", 1<<17))
		_ = out.Close()
	}()
	m, err := c.Call(t.Context(), "m", nil)
	require.NoError(t, err)
	var result struct{ A int }
	require.NoError(t, m.Decode(&result))
	require.Equal(t, 2, result.A)
	_, _, err = c.Await(t.Context(), 0, never)
	require.ErrorIs(t, err, rawrpc.ErrEnded)
	<-c.Done()
	require.Len(t, c.Messages(), 3)
	require.Len(t, c.Lines(), 4)
	require.Len(t, c.Lines()[3].Text, 1<<17)
}

// An agent that writes too much is not read any more, whether it ends its lines or not.
func TestFlood(t *testing.T) {
	for _, text := range []string{"x\n", "x"} {
		flood := io.LimitReader(repeat(text), 1<<22)
		c := rawrpc.New(flood, io.Discard, 1<<20)
		_, _, err := c.Await(context.Background(), 0, never)
		require.ErrorIs(t, err, rawrpc.ErrFlood)
		<-c.Done()
		left, err := io.ReadAll(flood)
		require.NoError(t, err)
		require.Greater(t, len(left), 1<<21)
	}
}

// repeat is a reader that repeats a text without end.
type repeat string

func (r repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r[i%len(r)]
	}
	return len(b), nil
}
