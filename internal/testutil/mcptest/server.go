package mcptest

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
