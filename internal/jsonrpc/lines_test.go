package jsonrpc_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// serveAll serves in to its end and returns the output lines.
func serveAll(t testing.TB, in io.Reader, h jsonrpc.Handler, o jsonrpc.Options) []string {
	t.Helper()
	var out output
	require.NoError(t, jsonrpc.NewConn(in, &out, h, o).Serve(context.Background()))
	return strings.Split(strings.TrimSuffix(string(out.take()), "\n"), "\n")
}

func TestW3_LongLineIsSkippedWithoutBufferingIt(t *testing.T) {
	const length = 64 << 20
	in := io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo","params":["`),
		io.LimitReader(endless{}, length),
		strings.NewReader("\"]}\n"+`{"jsonrpc":"2.0","id":2,"method":"echo"}`+"\n"))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := serveAll(t, in, &responder{}, jsonrpc.Options{MaxLine: 1 << 20})
	runtime.ReadMemStats(&after)

	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than the limit of 1048576 bytes"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{}}`,
	}, lines)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(length/4))
}

func TestW3_TheLimitCountsTheLineWithoutItsEnd(t *testing.T) {
	const frame = `{"jsonrpc":"2.0","id":1,"method":"echo","params":[""]}`
	line := strings.Replace(frame, `""`, `"`+strings.Repeat("x", 200_000)+`"`, 1)
	for name, c := range map[string]struct {
		in   string
		max  int
		fits bool
	}{
		"exact":            {line + "\n", len(line), true},
		"exact, CRLF":      {line + "\r\n", len(line), true},
		"exact, no end":    {line, len(line), true},
		"over":             {line + "\n", len(line) - 1, false},
		"over, CRLF":       {line + "\r\n", len(line) - 1, false},
		"over, no end":     {line, len(line) - 1, false},
		"far over, no end": {line, 10, false},
	} {
		t.Run("W3/"+name, func(t *testing.T) {
			lines := serveAll(t, strings.NewReader(c.in), &responder{}, jsonrpc.Options{MaxLine: c.max})
			require.Len(t, lines, 1)
			require.Equal(t, c.fits, strings.Contains(lines[0], `"result"`), lines[0][:60])
		})
	}
}

func TestW2_LastLineNeedsNoEnd(t *testing.T) {
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`},
		serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), &responder{}, jsonrpc.Options{}))
}

func TestW2_OpaqueParamsPassWhatIsTwice(t *testing.T) {
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`},
		serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1,"a":2}}`), &responder{},
			jsonrpc.Options{OpaqueParams: true}))
}

// endless is a stream of x.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
