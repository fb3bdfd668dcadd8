package mcpserver_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
)

func TestM8_WhoTellsOfChangesIsNotAskedAnew(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, mcpserver.Options{MaxAge: time.Nanosecond})
	p.begin(withRoots)
	p.answer(p.question(), a)
	for id := range 20 {
		p.write(call(id+1, "read_file", `{"path":"f"}`))
		m := p.read()
		require.Empty(t, m.Method, m.line)
		require.Contains(t, m.text(), "in a")
	}
}

// unasked keeps what comes on the stream that answers no request.
type unasked struct{ logtest.Text }

func (u *unasked) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, &u.Text), response.Body}
	}
	return response, err
}

func TestM8_OverHTTPNothingIsAskedOutsideOfACall(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, mcpserver.Options{Timeout: time.Second})
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		RootsV2: &mcp.RootCapabilities{ListChanged: true},
	}})
	client.AddRoots(&mcp.Root{URI: dirURI(t, a)})
	var stream unasked
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: &stream}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	require.Contains(t, readFile(t, session, filepath.Join(a, "f")), "in a")
	client.AddRoots(&mcp.Root{URI: dirURI(t, b)})
	require.Eventually(t, func() bool { // the notice has a way of its own, which the call may overtake
		return strings.Contains(readFile(t, session, filepath.Join(b, "f")), "in b")
	}, patience, 1)
	require.NotContains(t, stream.String(), "roots/list\"")
}
