package acp_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

const (
	// role is set where the test binary is to play an MCP server.
	role = "ACP_TEST_ROLE"
	// address is where it dials, so that its end is seen.
	address = "ACP_TEST_ADDRESS"
)

// play plays an MCP server.
//
//	files      tells its place, its roots and what it has heard; fetches the roots as most servers do
//	silent     takes everything, answers nothing
//	stubborn   does not want to end either
//	wrapper    starts "silent" below it and waits for that
//	note       writes TOKEN and its arguments to stderr and ends
func play(r string) int {
	var held net.Conn
	if at := os.Getenv(address); at != "" {
		var err error
		if held, err = net.Dial("tcp", at); err != nil {
			return 1
		}
		fmt.Fprintln(held, "here")
	}
	switch r {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, held)
	case "wrapper":
		below := exec.Command(os.Args[0])
		below.Env = append(os.Environ(), role+"=stubborn")
		_ = below.Run()
	case "note":
		fmt.Fprintln(os.Stderr, "no licence for", os.Getenv("TOKEN"), strings.Join(os.Args[1:], " "))
		return 3
	default:
		return playFiles()
	}
	return 0
}

// heard are the methods that a server was sent, in order.
type heard struct {
	mu      sync.Mutex
	methods []string
}

// tee notes the methods of the messages that r gives.
func (h *heard) tee(r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			var m message
			if json.Unmarshal(line, &m) == nil && m.Method != "" {
				h.mu.Lock()
				h.methods = append(h.methods, m.Method)
				h.mu.Unlock()
			}
			_, _ = in.Write(line)
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.methods, " ")
}

func playFiles() int {
	fetch := func(ctx context.Context, s *mcp.ServerSession) {
		go func() { _, _ = s.ListRoots(context.WithoutCancel(ctx), nil) }()
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "played", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{"2025-11-25"},
		InitializedHandler:        func(ctx context.Context, r *mcp.InitializedRequest) { fetch(ctx, r.Session) },
		RootsListChangedHandler:   func(ctx context.Context, r *mcp.RootsListChangedRequest) { fetch(ctx, r.Session) },
	})
	h := &heard{}
	add := func(name string, handle func(context.Context, *mcp.CallToolRequest) (string, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := handle(ctx, r)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, err
		})
	}
	add("roots", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		list, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		var uris []string
		for _, root := range list.Roots {
			uris = append(uris, root.URI)
		}
		return strings.Join(uris, " "), nil
	})
	add("where", func(context.Context, *mcp.CallToolRequest) (string, error) {
		cwd, err := os.Getwd()
		return fmt.Sprintf("%d in %s with %s", os.Getpid(), cwd, strings.Join(os.Args[1:], " ")), err
	})
	add("heard", func(context.Context, *mcp.CallToolRequest) (string, error) { return h.all(), nil })
	s.AddTool(&mcp.Tool{Name: "claim", InputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "claimed"}}}, nil
		})
	add("hang", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "hanging"})
		<-ctx.Done()
		return "", ctx.Err()
	})
	_ = s.Run(context.Background(), &mcp.IOTransport{Reader: h.tee(os.Stdin), Writer: os.Stdout})
	return 0
}

// server is an MCP server that this binary plays, as a client configures it. env is NAME=VALUE.
func server(name, r string, env ...string) map[string]any {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	pairs := []any{}
	for _, e := range append(env, role+"="+r, "GORACE=atexit_sleep_ms=0") {
		name, value, _ := strings.Cut(e, "=")
		pairs = append(pairs, map[string]any{"name": name, "value": value})
	}
	return map[string]any{"name": name, "command": exe, "args": []any{}, "env": pairs}
}

// servedParams are rootsParams with MCP servers.
func servedParams(id string, roots []string, servers ...map[string]any) string {
	var params map[string]any
	if err := json.Unmarshal([]byte(rootsParams(id, roots[0], roots[1:]...)), &params); err != nil {
		panic(err)
	}
	if servers != nil {
		params["mcpServers"] = servers
	}
	return encode(params)
}

// serve opens a session with MCP servers and returns its id.
func (c *client) serve(roots []string, servers ...map[string]any) string {
	c.t.Helper()
	var result struct{ SessionID string }
	require.NoError(c.t, json.Unmarshal(c.call("session/new", servedParams("", roots, servers...)), &result))
	return result.SessionID
}

// use has the session call a tool, and returns what came of it.
func (c *client) use(id, tool string) string {
	c.t.Helper()
	return strings.Join(c.texts(id, "use "+tool), "\n")
}

// holders are processes that were started, each seen by the connection that it holds.
type holders struct {
	t        *testing.T
	listener net.Listener
}

func newHolders(t *testing.T) *holders {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &holders{t, l}
}

func (h *holders) env() string { return address + "=" + h.listener.Addr().String() }

// next waits until one has started.
func (h *holders) next() net.Conn {
	h.t.Helper()
	require.NoError(h.t, h.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	c, err := h.listener.Accept()
	require.NoError(h.t, err, "nobody came")
	h.t.Cleanup(func() { _ = c.Close() })
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err = bufio.NewReaderSize(c, 16).ReadString('\n')
	require.NoError(h.t, err)
	return c
}

// none fails if one has started that next has not returned. Those that dialled are in the listener's queue.
func (h *holders) none() {
	h.t.Helper()
	require.NoError(h.t, h.listener.(*net.TCPListener).SetDeadline(time.Now().Add(-time.Second)))
	_, err := h.listener.Accept()
	require.ErrorIs(h.t, err, os.ErrDeadlineExceeded, "somebody came")
}

// ended waits for the end of one.
func (h *holders) ended(c net.Conn) {
	h.t.Helper()
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	require.Error(h.t, err)
	require.NotErrorIs(h.t, err, os.ErrDeadlineExceeded, "the process lives on")
}
