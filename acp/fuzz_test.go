package acp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// FuzzServe sends any bytes to a whole agent: it ends with its input, and says nothing but JSON-RPC
// on the way.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","additionalDirectories":["/tmp"],"mcpServers":[]}}` + "\n" +
			`{"jsonrpc":"2.0","id":3,"method":"session/list","params":{"cwd":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}`,
		"\x00{}[]\n\xff\n{\"jsonrpc\":\"2.0\"}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		err := acp.Serve(t.Context(), io.NopCloser(bytes.NewReader(input)), &out, acp.Options{
			Store:   sessionstore.NewMemory(),
			Backend: func() backend.Backend { return &scripted{release: closed()} },
		}.With(acp.Tuning{
			Wire: jsonrpc.Options{MaxLine: 1 << 16, Grace: time.Second},
		}))
		require.NoError(t, err)
		lines := bufio.NewScanner(&out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m struct{ JSONRPC string }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &m), lines.Text())
			require.Equal(t, "2.0", m.JSONRPC)
		}
	})
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
