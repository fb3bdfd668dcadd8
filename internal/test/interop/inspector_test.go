package interop

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// inspector is the MCP Inspector's command-line client: one process keeps the connection, and
// commands talk to it through a socket. Except for the first one the test takes their place,
// because each would start Node.
type inspector struct {
	t   *testing.T
	dir string // of the process
}

// inspect connects the inspector to acp-agent mcp, in an era of the protocol.
func inspect(t *testing.T, era string) *inspector {
	t.Helper()
	mcpdo := npmtest.File(t, "testdata/node-mcp-clients", ".bin/mcpdo")
	node := npmtest.File(t, "testdata/node-acpx", ".bin/node") // it keeps what it compiles
	home := dirtest.Short(t)
	config := configFile(t, map[string]any{"mcpServers": map[string]any{
		"files": map[string]any{"command": program.Path(), "args": []string{"mcp"}}}})
	i := &inspector{t: t, dir: filepath.Join(home, ".mcp-inspector")}
	cmd := exec.CommandContext(within(t), node, mcpdo, "--config", config, "connect", "files", "--era", era)
	cmd.Env = append(os.Environ(), "HOME="+home, "MCP_INSPECTOR_SECRET_STORE=memory")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		i.run("daemon/stop", map[string]any{}, nil)
		require.Eventually(t, func() bool { // it removes its files
			_, err := os.Lstat(filepath.Join(i.dir, "mcpdod.lock"))
			return errors.Is(err, fs.ErrNotExist)
		}, patience, 10*time.Millisecond)
	})
	return i
}

// run runs a command and decodes its result.
func (i *inspector) run(op string, params map[string]any, result any) {
	i.t.Helper()
	token := dirtest.Read(i.t, filepath.Join(i.dir, "mcpdod.token"))
	conn, err := net.Dial("unix", filepath.Join(i.dir, "mcpdod.sock"))
	require.NoError(i.t, err)
	defer conn.Close()
	require.NoError(i.t, conn.SetDeadline(time.Now().Add(patience)))
	require.NoError(i.t, json.NewEncoder(conn).Encode(map[string]any{
		"id": "1", "op": op, "params": params, "token": strings.TrimSpace(token)}))
	var answer struct {
		OK            bool
		Result, Error json.RawMessage
	}
	require.NoError(i.t, json.NewDecoder(conn).Decode(&answer))
	require.True(i.t, answer.OK, "%s", answer.Error)
	if result != nil {
		require.NoError(i.t, json.Unmarshal(answer.Result, result), "%s", answer.Result)
	}
}

// call calls a tool and returns the text of its result, and whether it is an error.
func (i *inspector) call(tool string, arguments map[string]string) (text string, failed bool) {
	i.t.Helper()
	var result struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	i.run("rpc", map[string]any{"name": "files", "method": "tools/call", "toolName": tool,
		"toolArg": arguments, "interactive": false}, &result)
	require.NotEmpty(i.t, result.Result.Content)
	return result.Result.Content[0].Text, result.Result.IsError
}

// setRoots changes the client's roots.
func (i *inspector) setRoots(roots ...map[string]string) {
	i.t.Helper()
	if roots == nil {
		roots = []map[string]string{}
	}
	encoded, err := json.Marshal(roots)
	require.NoError(i.t, err)
	i.run("rpc", map[string]any{"name": "files", "method": "roots/set", "rootsJson": string(encoded),
		"interactive": false}, nil)
}

func rootAt(t *testing.T, path string) map[string]string {
	t.Helper()
	return map[string]string{"uri": mcptest.URIs(t, path)[0]}
}

// An independent client sets, changes and removes roots; the tools follow within one call.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run("M7/"+era, func(t *testing.T) {
			t.Parallel()
			top := folder(t, "a 100% #1/f", "in a 100% #1", "b?é/f", "in b?é")
			a, b := filepath.Join(top, "a 100% #1"), filepath.Join(top, "b?é")
			i := inspect(t, era)

			i.setRoots(map[string]string{"uri": "https://example.com"}, rootAt(t, filepath.Join(top, "missing")), rootAt(t, a), rootAt(t, b))
			text, failed := i.call("read_file", map[string]string{"path": "f"})
			require.False(t, failed, text)
			require.Contains(t, text, "in a 100% #1", "M10: the first valid root is the base")
			text, _ = i.call("read_file", map[string]string{"path": filepath.Join(b, "f")})
			require.Contains(t, text, "in b?é")
			text, _ = i.call("list_roots", map[string]string{})
			require.Contains(t, text, "example.com")
			require.Contains(t, text, "no such directory")

			i.setRoots(rootAt(t, b))
			text, _ = i.call("read_file", map[string]string{"path": "f"})
			require.Contains(t, text, "in b?é", "M9: a change is followed")
			text, failed = i.call("read_file", map[string]string{"path": filepath.Join(a, "f")})
			require.True(t, failed, text)
			text, failed = i.call("write_file", map[string]string{"path": "g", "content": "written"})
			require.False(t, failed, text)
			require.Equal(t, "written", dirtest.Read(t, filepath.Join(b, "g")))

			i.setRoots()
			text, failed = i.call("read_file", map[string]string{"path": filepath.Join(b, "f")})
			require.True(t, failed, text)
			require.Contains(t, text, "No files are accessible", "M10: an empty list closes the scope")
		})
	}
}
