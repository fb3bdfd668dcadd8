// Package mcptest is an MCP server for tests, of the official SDK. It asks for the roots of its client, as servers of
// both eras of the protocol do, and says what it was told:
//
//	// In a process that the test binary plays, see package proctest:
//	return mcptest.New(mcptest.Options{}).Play()
//
// Its tool "roots" answers with the roots, which are to be the [URIs] of the session's, and its tool "heard" with the methods of all
// messages that it was sent. A test adds tools of its own with [Server.Add], and puts a server behind HTTP with
// [Guard]. Only tests import it.
package mcptest

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

// Options shape a server.
type Options struct {
	// Revision is the only one of the protocol that it speaks; "" for all that the SDK does.
	Revision string
	// Fetch: it asks for the roots at its start and after each change, as most servers of the legacy era do.
	Fetch bool
	// Initialized and Changed are called, if they are not nil, when a legacy client has introduced itself, and when it says that
	// the roots have changed. They may be called by several goroutines at a time.
	Initialized, Changed func()
}

// Server is an MCP server. It serves one client if it is played, and any number behind HTTP.
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
	options := &mcp.ServerOptions{InitializedHandler: func(ctx context.Context, r *mcp.InitializedRequest) { react(ctx, r.Session, o.Initialized) }}
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

// anything is a schema that takes every object.
func anything() map[string]any { return map[string]any{"type": "object"} }

// Add adds a tool, or replaces the one of its name: it takes any arguments and answers with a text, or with
// an error of the protocol.
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

// Text is a result that is a text.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// roots asks for the roots, in the way of either era, and says their URIs, one a line.
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

// Play serves the client on standard input and output until the input ends, and returns the exit status of a process
// that does nothing else.
func (s *Server) Play() int {
	err := s.Run(context.Background(), &mcp.IOTransport{Reader: s.heard.listen(os.Stdin), Writer: os.Stdout})
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Guarded is a server behind HTTP that wants a header with each request.
type Guarded struct {
	// URL is its address.
	URL string

	mu      sync.Mutex
	refused []string
}

// Guard serves a handler to requests with a header, until the test is over. Others are refused as unauthorized.
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

// Refused are the requests so far that came without the header, as method and address.
func (g *Guarded) Refused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.refused...)
}

// heard are the methods of the messages that a server was sent, in order.
type heard struct {
	mu      sync.Mutex
	methods []string
}

// listen notes the methods of the messages that from gives, before they are read.
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

// String is the methods, one a line.
func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.methods, "\n")
}

// URIs are directories as the URIs that a server is told, in their order. It fails the test if a path is not
// absolute.
func URIs(t testing.TB, dirs ...string) (uris []string) {
	t.Helper()
	for _, path := range dirs {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		uris = append(uris, dir.URI())
	}
	return uris
}
