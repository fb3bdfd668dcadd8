package client

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// The official TypeScript server leaves params out of the requests in its results, which the MCP
// SDK cannot read.
const (
	withoutParams = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}`
	withParams    = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}`
)

func body(text, kind string, limit int) (string, error) {
	ended := false
	source := io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))
	m := &responseBody{body: source, limit: limit, notices: perSecond(1000), wait: newPendingRequests(limits{MaxRequests: 1}).wait, end: func() { ended = true }, fail: func(error) {}}
	if kind == "events" {
		m.events = jsonrpc.NewReader(source, limit)
	}
	read, err := io.ReadAll(m)
	if closed := m.Close(); err == nil && (closed != nil || !ended) {
		err = io.ErrClosedPipe
	}
	return string(read), err
}

// Clause M7.
func TestResponseBodiesAreMended(t *testing.T) {
	got, err := body(withoutParams, "one", 1<<20)
	require.NoError(t, err)
	require.JSONEq(t, withParams, got)

	got, err = body(": hello\n\nevent: message\ndata: "+withoutParams+"\n\ndata: {}\nid: 7", "events", 1<<20)
	require.NoError(t, err)
	lines := strings.Split(got, "\n")
	require.Equal(t, ": hello\n\nevent: message", strings.Join(lines[:3], "\n"))
	require.JSONEq(t, withParams, strings.TrimPrefix(lines[3], "data: "))
	require.Equal(t, "\ndata: {}\nid: 7", strings.Join(lines[4:], "\n"))
}

func TestResponseBodyLimit(t *testing.T) {
	var long *limitError
	_, err := body(strings.Repeat("x", 101), "one", 100)
	require.ErrorAs(t, err, &long)
	got, err := body("data: 1\n\ndata: "+string(bytes.Repeat([]byte("x"), 10_000)), "events", 100)
	require.ErrorAs(t, err, &long)
	require.Equal(t, "data: 1\n\n", got)
	got, err = body(strings.Repeat("data: 1\n\n", 1000), "events", 100)
	require.NoError(t, err)
	require.Len(t, got, 9000)
}
