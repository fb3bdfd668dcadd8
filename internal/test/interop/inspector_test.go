package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// inspector is the MCP Inspector's command-line client: one process keeps the connection, and each
// command talks to it.
type inspector struct {
	t      *testing.T
	node   string
	mcpdo  string
	home   string
	config string

	compiled string // what node has compiled
}

// inspect connects the inspector to acp-agent mcp, in an era of the protocol.
func inspect(t *testing.T, era, compiled string) *inspector {
	t.Helper()
	mcpdo := npmtest.File(t, "testdata/node-mcp-clients", ".bin/mcpdo")
	node := npmtest.File(t, "testdata/node-acpx", ".bin/node") // it keeps what it compiles
	home := t.TempDir()
	i := &inspector{t: t, node: node, mcpdo: mcpdo, home: home, config: filepath.Join(home, "config.json"), compiled: compiled}
	config := fmt.Sprintf(`{"mcpServers":{"files":{"command":%q,"args":["mcp"]}}}`, program.Path())
	require.NoError(t, os.WriteFile(i.config, []byte(config), 0o600))
	t.Cleanup(func() { i.try("daemon", "stop") })
	i.run("connect", "files", "--era", era)
	return i
}

// try runs a command and returns what it printed.
func (i *inspector) try(args ...string) (string, error) {
	i.t.Helper()
	cmd := exec.CommandContext(within(i.t), i.node, append([]string{i.mcpdo, "--config", i.config, "--connection", "files", "--format", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+i.home, "MCP_INSPECTOR_SECRET_STORE=memory")
	if args[0] != "connect" { // it starts a process that ends some time after the test
		cmd.Env = append(cmd.Env, "NODE_COMPILE_CACHE="+i.compiled)
	}

	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("mcpdo %v: %w\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String(), err
}

func (i *inspector) run(args ...string) string {
	i.t.Helper()
	printed, err := i.try(args...)
	require.NoError(i.t, err)
	return printed
}

// call calls a tool and returns the text of its result, and whether it is an error.
func (i *inspector) call(tool string, arguments map[string]string) (text string, failed bool) {
	i.t.Helper()
	encoded, err := json.Marshal(arguments)
	require.NoError(i.t, err)
	printed, _ := i.try("tools/call", tool, string(encoded)) // it fails where the tool does
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	require.NoError(i.t, json.Unmarshal([]byte(printed), &result), printed)
	require.NotEmpty(i.t, result.Content, printed)
	return result.Content[0].Text, result.IsError
}

// setRoots changes the client's roots.
func (i *inspector) setRoots(roots ...map[string]string) {
	i.t.Helper()
	if roots == nil {
		roots = []map[string]string{}
	}
	encoded, err := json.Marshal(roots)
	require.NoError(i.t, err)
	i.run("roots/set", "--roots-json", string(encoded))
}

func rootAt(t *testing.T, path string) map[string]string {
	t.Helper()
	return map[string]string{"uri": mcptest.URIs(t, path)[0]}
}

// An independent client sets, changes and removes roots; the tools follow within one call.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	compiled := t.TempDir()
	for _, era := range []string{"legacy", "modern"} {
		t.Run("M7/"+era, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			a, b := filepath.Join(top, "a 100% #1"), filepath.Join(top, "b?é")
			for _, dir := range []string{a, b} {
				require.NoError(t, os.Mkdir(dir, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("in "+filepath.Base(dir)), 0o600))
			}
			i := inspect(t, era, compiled)

			i.setRoots(map[string]string{"uri": "https://example.com"}, rootAt(t, filepath.Join(top, "missing")), rootAt(t, a), rootAt(t, b))
			text, failed := i.call("read_file", map[string]string{"path": "f"})
			require.False(t, failed, text)
			require.Contains(t, text, "in a 100% #1", "M10: the first valid root is the base")
			if era == "legacy" && !volume.Full() { // each command starts Node
				i.setRoots(rootAt(t, b))
				text, _ = i.call("read_file", map[string]string{"path": "f"})
				require.Contains(t, text, "in b?é", "M9: a change is followed")
				return
			}
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
			written, err := os.ReadFile(filepath.Join(b, "g"))
			require.NoError(t, err)
			require.Equal(t, "written", string(written))

			i.setRoots()
			text, failed = i.call("read_file", map[string]string{"path": filepath.Join(b, "f")})
			require.True(t, failed, text)
			require.Contains(t, text, "No files are accessible", "M10: an empty list closes the scope")
		})
	}
}
