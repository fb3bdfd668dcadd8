package mcpserver

//lint:file-ignore SA1019 the SDK marks roots and sampling as deprecated (SEP-2577)

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/npmtest"
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

// forSuite starts a server for the scenarios that apply to any server, and for those that ask for
// the roots: their tools are of another server, which has none of its own.
func forSuite(t *testing.T) string {
	t.Helper()
	const one = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	png, err := base64.StdEncoding.DecodeString(one)
	require.NoError(t, err)
	roots := rootSet(t, tree(t, map[string]string{
		"f": "x", "f.png": string(png), "f.wav": "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00", "f.pdf": "%PDF-1.4\n",
		".claude/commands/test_simple_prompt.md":         "Say something.",
		".claude/commands/test_prompt_with_arguments.md": "---\narguments: [arg1, arg2]\n---\nUse $arg1 and $arg2.",
	}))
	server, err := Open(t.Context(), Options{Roots: roots})
	require.NoError(t, err)
	addFileAliases(server, map[string][2]string{
		"test_simple_text":       {"read_file", read("f")},
		"test_image_content":     {"read_media", read("f.png")},
		"test_audio_content":     {"read_media", read("f.wav")},
		"test_embedded_resource": {"read_media", read("f.pdf")},
		"test_error_handling":    {"read_file", read("none")},
	})
	asking, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	addListRootsAliases(asking, "test_input_required_result_list_roots",
		"test_input_required_result_tampered_state")
	addInputTool(asking, "test_input_required_result_capabilities")
	own, others := server.Handler(), asking.Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"test_input_required_result`)) {
			others.ServeHTTP(w, r)
		} else {
			own.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		server.Close()
		asking.Close()
		s.Close()
	})
	return s.URL
}

// Clause M7.
func TestConformanceLegacy(t *testing.T) {
	runSuite(t, node22(t), "@modelcontextprotocol/conformance", forSuite(t), append([]string{
		"server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
		"dns-rebinding-protection"}, forEverySuite...))
}

// Clauses M7, M8.
func TestConformanceModern(t *testing.T) {
	runSuite(t, node22(t), "conformance-next", forSuite(t), append([]string{
		"tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found",
		"dns-rebinding-protection", "caching", "http-header-validation",
		"input-required-result-basic-list-roots", "input-required-result-capability-check",
		"input-required-result-tampered-state"}, forEverySuite...), "--spec-version", "2026-07-28")
}

// forEverySuite are scenarios of both eras for what acp-agent offers under other names.
var forEverySuite = []string{"tools-call-simple-text", "tools-call-image", "tools-call-audio",
	"tools-call-embedded-resource", "tools-call-error", "prompts-get-simple", "prompts-get-with-args"}

// addFileAliases adds calls of file tools, given as tool and arguments, under the names of the
// tools of an example server.
func addFileAliases(s *Server, calls map[string][2]string) {
	addTools(s, func(server *mcp.Server, c *client) {
		for name, call := range calls {
			server.AddTool(&mcp.Tool{Name: name, Description: "Calls " + call[0] + ".",
				InputSchema: map[string]any{"type": "object"}},
				func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					r.Params.Arguments = []byte(call[1])
					return c.fileTool(call[0])(ctx, r)
				})
		}
	})
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
