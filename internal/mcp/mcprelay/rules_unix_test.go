//go:build unix

package mcprelay_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
)

// The rules that a session has now hold for the calls that a relay would pass on.
//
// Clause R5.
func TestRulesHoldForCalls(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			dirs := folders(t, "a", "b")
			require.NoError(t, os.WriteFile(filepath.Join(dirs[1], ".env"), nil, 0o600))
			link := filepath.Join(dirs[0], "link")
			require.NoError(t, os.Symlink(filepath.Join(dirs[1], ".env"), link))
			var rules atomic.Pointer[mcprelay.Rules]
			rules.Store(&mcprelay.Rules{Folders: dirs})
			p := publish(t, dirs...)
			p.SetAnswers(nil, func() (mcprelay.Rules, bool) { return *rules.Load(), true })
			server := self(era)
			server.Name = "files"
			c := connect(t, behind(p, server), options())
			requirePassed := func(tool string, arguments map[string]any) {
				t.Helper()
				result := c.callWith(tool, arguments)
				require.False(t, result.IsError, "%s", said(t, result))
			}
			requireRefused := func(why, tool string, arguments map[string]any) {
				t.Helper()
				result := c.callWith(tool, arguments)
				require.True(t, result.IsError, "%s", said(t, result))
				require.Contains(t, said(t, result), why)
			}
			secret := map[string]any{"path": filepath.Join(dirs[1], ".env")}
			requirePassed("roots", secret)

			rules.Store(&mcprelay.Rules{Folders: dirs, Ask: []string{"run make ..."},
				Deny: []string{"tool files.twice", "tool other.*", "read **/.env"}})
			requirePassed("roots", nil)
			requirePassed("roots", map[string]any{"path": "open"})
			requireRefused(`tool files.twice`, "twice", nil)
			for _, path := range []any{secret["path"], link, "link", ".env", "FILE/.ENV",
				[]string{"x", "file://" + dirs[1] + "/.env"}} {
				requireRefused(`read **/.env`, "roots", map[string]any{"paths": path})
			}
			requirePassed("roots", map[string]any{"command": "make", "args": []string{"all"}})

			rules.Store(&mcprelay.Rules{Folders: dirs, Deny: []string{"tool Files.roots"}})
			requirePassed("twice", secret)
			requireRefused("tool Files.roots", "roots", nil)
			rules.Store(&mcprelay.Rules{Deny: []string{"tool Files.roots"}})
			requireRefused("the folders of the session are gone", "twice", nil)
		})
	}
}

// callWith calls a tool with arguments.
func (c client) callWith(tool string, arguments map[string]any) *mcp.CallToolResult {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(c.t, err)
	return result
}

// said returns the content of a result.
func said(t testing.TB, result *mcp.CallToolResult) string {
	t.Helper()
	raw, err := json.Marshal(result.Content)
	require.NoError(t, err)
	return string(raw)
}
