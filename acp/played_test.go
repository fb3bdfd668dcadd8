package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// play plays an MCP server.
//
//	files      tells its place, its roots and what it has heard; fetches the roots as most servers do
//	silent     takes everything, answers nothing
//	stubborn   does not want to end either
//	wrapper    starts "stubborn" below it and waits for that
//	note       writes TOKEN and its arguments to stderr and ends
func play(r string) int {
	if r == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		return proctest.HoldOn()
	}
	if proctest.Hold() != nil {
		return 1
	}
	switch r {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "wrapper":
		below := exec.Command(proctest.Executable())
		below.Env = append(os.Environ(), proctest.Env("stubborn")...)
		_ = below.Run()
	case "note":
		fmt.Fprintln(os.Stderr, "no licence for", os.Getenv("TOKEN"), strings.Join(os.Args[1:], " "))
		return 3
	default:
		return playFiles()
	}
	return 0
}

func playFiles() int {
	s := mcptest.New(mcptest.Options{Revision: "2025-11-25", Fetch: true})
	s.Add(&mcp.Tool{Name: "where"}, func(context.Context, *mcp.CallToolRequest) (string, error) {
		cwd, err := os.Getwd()
		return fmt.Sprintf("%d in %s with %s", os.Getpid(), cwd, strings.Join(os.Args[1:], " ")), err
	})
	s.Add(&mcp.Tool{Name: "claim", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (string, error) { return "claimed", nil })
	s.Add(&mcp.Tool{Name: "hang"}, func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "hanging"})
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s.Play()
}

// server is an MCP server that this binary plays, as a client configures it. env is NAME=VALUE.
func server(name, r string, env ...string) map[string]any {
	pairs := []any{}
	for _, e := range proctest.Env(r, env...) {
		name, value, _ := strings.Cut(e, "=")
		pairs = append(pairs, map[string]any{"name": name, "value": value})
	}
	return map[string]any{"name": name, "command": proctest.Executable(), "args": []any{}, "env": pairs}
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
