package mcptest_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestMain(m *testing.M) {
	proctest.Main(m, func(revision string) int {
		return mcptest.New(mcptest.Options{Revision: strings.TrimPrefix(revision, "any"), Fetch: true}).Play()
	})
}

func TestPlay(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28", "any"} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, proctest.Executable())
			cmd.Env = append(os.Environ(), proctest.Env(revision)...)
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
			uris := mcptest.URIs(t, dirtest.New(t), dirtest.New(t))
			for _, uri := range uris {
				client.AddRoots(&mcp.Root{URI: uri})
			}
			session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
			require.NoError(t, err)
			defer session.Close()
			call := func(tool string) string {
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
				require.NoError(t, err)
				return result.Content[0].(*mcp.TextContent).Text
			}
			require.ElementsMatch(t, uris, strings.Split(call("roots"), "\n"))
			require.Contains(t, call("heard"), "tools/call")
		})
	}
}

func TestGuard(t *testing.T) {
	g := mcptest.Guard(t, "Authorization", "yes", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }))
	get := func(header string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/path", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", header)
		transport := &http.Transport{DisableKeepAlives: true}
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, get("yes"))
	require.Empty(t, g.Refused())
	require.Equal(t, http.StatusUnauthorized, get("no"))
	require.Equal(t, []string{"GET /path"}, g.Refused())
}
