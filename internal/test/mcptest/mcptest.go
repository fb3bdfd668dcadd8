// Package mcptest provides an MCP server for tests, based on the official SDK. It asks for the
// client's roots in the way of either era of the protocol:
//
//	// In a process played by the test binary; see package proctest.
//	return mcptest.New(mcptest.Options{}).Play()
//
// Its tool "roots" returns the roots, which should be the [URIs] of the session, and its tool
// "heard" the methods of all messages it has received. Tests can add tools with [Server.Add] and
// put a server behind HTTP with [Guard]. [PlayTools] and [PlayRaw] play servers with many ways to
// behave, and a [Fake] answers what a test wants. It must only be imported by tests.
package mcptest

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure a server.
type Options struct {
	// Revision is the only protocol revision that the server supports; "" means all that the SDK
	// supports.
	Revision string
	// Fetch makes the server ask for the roots at the start and after each change, as most legacy
	// servers do.
	Fetch bool
	// Initialized and Changed, if not nil, are called when a legacy client has initialized, and
	// when it announces that the roots have changed. They may be called concurrently.
	Initialized, Changed func()
}

// Server is an MCP server. [Server.Play] serves one client; behind HTTP it serves any number.
type Server struct {
	*mcp.Server
	heard heard
}

// New returns a server with the tools "roots" and "heard".
func New(o Options) *Server {
	s := &Server{}
	react := func(ctx context.Context, session *mcp.ServerSession, note func()) {
		if note != nil {
			note()
		}
		if o.Fetch {
			go func() { _, _ = session.ListRoots(context.WithoutCancel(ctx), nil) }()
		}
	}
	options := &mcp.ServerOptions{Instructions: "Call roots.", InitializedHandler: func(ctx context.Context, r *mcp.InitializedRequest) { react(ctx, r.Session, o.Initialized) }}
	if o.Fetch || o.Changed != nil {
		options.RootsListChangedHandler = func(ctx context.Context, r *mcp.RootsListChangedRequest) { react(ctx, r.Session, o.Changed) }
	}
	if o.Revision != "" {
		options.SupportedProtocolVersions = []string{o.Revision}
	}
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "played", Version: "1"}, options)
	s.AddTool(&mcp.Tool{Name: "roots", Description: "The roots.", InputSchema: anything()}, roots)
	s.Add(&mcp.Tool{Name: "heard"}, func(context.Context, *mcp.CallToolRequest) (string, error) { return s.heard.String(), nil })
	return s
}

// anything returns a schema that accepts every object.
func anything() map[string]any { return map[string]any{"type": "object"} }

// Add adds or replaces a tool. It accepts any arguments and returns a text, or an error of the
// protocol.
func (s *Server) Add(tool *mcp.Tool, handle func(context.Context, *mcp.CallToolRequest) (string, error)) {
	tool.InputSchema = anything()
	s.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := handle(ctx, r)
		if err != nil {
			return nil, err
		}
		return Text(text), nil
	})
}

// Text returns a result with a text.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// roots asks for the roots and returns their URIs, one per line.
func roots(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const question = "where"
	list, ok := r.Params.InputResponses[question].(*mcp.ListRootsResult)
	if !ok {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{question: &mcp.ListRootsParams{}}}, nil
	}
	var uris []string
	for _, root := range list.Roots {
		uris = append(uris, root.URI)
	}
	return Text(strings.Join(uris, "\n")), nil
}

// Play serves the client on standard input and output until the input ends, and returns an exit
// status for the process.
func (s *Server) Play() int {
	err := s.Run(context.Background(), &mcp.IOTransport{Reader: s.heard.listen(os.Stdin), Writer: os.Stdout})
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Guarded is an HTTP server that requires a header with each request.
type Guarded struct {
	// URL is its address.
	URL string

	mu      sync.Mutex
	refused []string
}

// Guard serves a handler until the test ends, and rejects requests without the header as
// unauthorized.
func Guard(t testing.TB, name, value string, behind http.Handler) *Guarded {
	t.Helper()
	g := &Guarded{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(name) == value {
			behind.ServeHTTP(w, r)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refused = append(g.refused, r.Method+" "+r.URL.String())
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.URL = server.URL
	return g
}

// Refused returns the requests without the header so far, as method and URL.
func (g *Guarded) Refused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.refused...)
}

// heard records the methods of the messages that a server receives.
type heard struct {
	mu      sync.Mutex
	methods []string
}

// listen returns a reader of from that records the methods of messages before they are read.
func (h *heard) listen(from io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			h.note(line)
			if _, closed := in.Write(line); err == nil {
				err = closed
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

func (h *heard) note(line []byte) {
	var message struct{ Method string }
	if json.Unmarshal(line, &message) != nil || message.Method == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.methods = append(h.methods, message.Method)
}

// String returns the methods, one per line.
func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.methods, "\n")
}

// URIs returns the file URIs of directories. It fails the test if a path is not absolute.
func URIs(t testing.TB, dirs ...string) (uris []string) {
	t.Helper()
	for _, path := range dirs {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		uris = append(uris, dir.URI())
	}
	return uris
}
