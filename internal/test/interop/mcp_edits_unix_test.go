//go:build unix

package interop

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

const (
	mcpServers     = 2
	callsOfAClient = 4 // at once
	editsOfACall   = 15
)

// Two clients, each with a server of its own, edit one file with several calls at once. No edit is
// refused, and none is lost.
//
// Clause E1.
func TestMCPEditsAtOnce(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for n := range mcpServers * callsOfAClient {
		fmt.Fprintf(&text, "line %d: 0\n", n)
	}
	path := file(t, "f", text.String())
	results := make(chan error, mcpServers*callsOfAClient)
	for server := range mcpServers {
		client := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil)
		session, err := client.Connect(within(t), &mcp.CommandTransport{
			Command: exec.Command(program.Path(), "mcp", "--dir", filepath.Dir(path))}, nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Close() })
		for call := range callsOfAClient {
			go func() { results <- editLine(t, session, server*callsOfAClient+call) }()
		}
	}
	for range mcpServers * callsOfAClient {
		require.NoError(t, <-results)
	}
	want := strings.ReplaceAll(text.String(), ": 0\n", fmt.Sprintf(": %d\n", editsOfACall))
	require.Equal(t, want, dirtest.Read(t, path))
}

// editLine counts up on line n.
func editLine(t *testing.T, session *mcp.ClientSession, n int) error {
	for i := range editsOfACall {
		result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "edit_file",
			Arguments: map[string]any{"path": "f", "old_text": fmt.Sprintf("line %d: %d\n", n, i),
				"new_text": fmt.Sprintf("line %d: %d\n", n, i+1)}})
		if err != nil {
			return err
		}
		if result.IsError {
			return fmt.Errorf("line %d: %s", n, result.Content[0].(*mcp.TextContent).Text)
		}
	}
	return nil
}

// Of two writes that expect one version, one succeeds, whichever server gets it.
//
// Clause E1.
func TestMCPWritesOfAVersion(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	var sessions []*mcp.ClientSession
	for range mcpServers {
		client := mcp.NewClient(&mcp.Implementation{Name: "client"}, nil)
		session, err := client.Connect(within(t), &mcp.CommandTransport{
			Command: exec.Command(program.Path(), "mcp", "--dir", dir)}, nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Close() })
		sessions = append(sessions, session, session)
	}
	version := ""
	for i := range 30 {
		type outcome struct {
			result *mcp.CallToolResult
			err    error
		}
		outcomes := make(chan outcome, len(sessions))
		condition, expected := "if_version", version
		if version == "" {
			condition, expected = "if_exists", "fail"
		}
		for n, session := range sessions {
			go func() {
				a := map[string]any{"path": "f", "content": fmt.Sprintf("%d by %d\n", i, n),
					condition: expected}
				result, err := session.CallTool(within(t), &mcp.CallToolParams{
					Name: "write_file", Arguments: a})
				outcomes <- outcome{result, err}
			}()
		}
		done := 0
		for range sessions {
			o := <-outcomes
			require.NoError(t, o.err)
			if said := o.result.Content[0].(*mcp.TextContent).Text; !o.result.IsError {
				done++
				_, version, _ = strings.Cut(said, ", version ")
				version = version[:12]
			}
		}
		require.Equal(t, 1, done)
	}
}
