package server

//lint:file-ignore SA1019 the SDK marks roots and sampling as deprecated (SEP-2577)

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// runSuite runs a release of the MCP conformance suite against a server, and requires that these of
// its scenarios pass. Most others need tools that only an example server has.
func runSuite(t *testing.T, node, release, url string, scenarios []string, more ...string) {
	t.Helper()
	script := npmtest.File(t, "testdata/node-mcp-clients", release+"/dist/index.js")
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{script, "server", "--url", url,
		"--suite", "all"}, more...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	printed := string(out)
	_, summary, found := strings.Cut(printed, "=== SUMMARY ===")
	require.True(t, found, "%v: %s", err, printed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(printed)
		}
	})
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			require.Regexp(t, "(?m)^✓ "+scenario+": [1-9][0-9]* passed, 0 failed$", summary)
		})
	}
}

// node22 returns the Node.js that the newer release of the suite needs.
func node22(t *testing.T) string {
	t.Helper()
	return npmtest.File(t, "testdata/node-acpx", "node-linux-*/bin/node")
}

// forSuite starts a server for the scenarios that apply to any server.
func forSuite(t *testing.T) string {
	t.Helper()
	fallback, err := workspace.NewRoots(tree(t, map[string]string{"f": "x"}), nil)
	require.NoError(t, err)
	server, err := Open(t.Context(), Options{Fallback: fallback})
	require.NoError(t, err)
	s := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		s.CloseClientConnections()
		server.Close()
		s.Close()
	})
	return s.URL
}

// Clause M7.
func TestConformanceLegacy(t *testing.T) {
	runSuite(t, "node", "@modelcontextprotocol/conformance", forSuite(t), []string{
		"server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
		"dns-rebinding-protection"})
}

// Clauses M7, M8.
func TestConformanceModern(t *testing.T) {
	const release = "conformance-next"
	node, revision := node22(t), []string{"--spec-version", "2026-07-28"}
	runSuite(t, node, release, forSuite(t), []string{
		"tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found",
		"dns-rebinding-protection", "caching", "http-header-validation"}, revision...)
	server, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	addListRootsAliases(server, "test_input_required_result_list_roots",
		"test_input_required_result_tampered_state")
	addInputTool(server, "test_input_required_result_capabilities")
	asking := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		asking.CloseClientConnections()
		server.Close()
		asking.Close()
	})
	runSuite(t, node, release, asking.URL, []string{
		"input-required-result-basic-list-roots", "input-required-result-capability-check",
		"input-required-result-tampered-state"}, revision...)
}

// addListRootsAliases adds list_roots under more names, as the conformance suites expect.
func addListRootsAliases(s *Server, names ...string) {
	addTools(s, func(server *mcp.Server, c *client) {
		for _, name := range names {
			t := listRootsTool()
			t.Name = name
			server.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return c.callTool(ctx, r, false, func(sc *scope) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{
						&mcp.TextContent{Text: sc.list().String()}}}, nil
				})
			})
		}
	})
}

// addInputTool adds a tool that asks for the roots or a completion, depending on what the client
// declares.
func addInputTool(s *Server, name string) {
	addTools(s, func(server *mcp.Server, _ *client) {
		t := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		server.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			requests := mcp.InputRequestMap{}
			if declared := r.ClientCapabilities(); declared != nil && declared.RootsV2 != nil {
				requests[rootsKey] = &mcp.ListRootsParams{}
			} else if declared != nil && declared.Sampling != nil {
				requests["text"] = &mcp.CreateMessageParams{MaxTokens: 1,
					Messages: []*mcp.SamplingMessage{}}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: requests}, nil
		})
	})
}

func addTools(s *Server, add func(*mcp.Server, *client)) {
	before := s.extraTools
	s.extraTools = func(server *mcp.Server, c *client) {
		if before != nil {
			before(server, c)
		}
		add(server, c)
	}
}
