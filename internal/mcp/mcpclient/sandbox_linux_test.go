package mcpclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// writing returns a sandboxed server that, each time it is started, tries to append a line to the
// file "starts" in each of dirs.
func writing(t *testing.T, s sandbox.Settings, dirs ...string) mcpclient.Config {
	c := mcptest.Self("s", "sdk", "TMPDIR="+t.TempDir())
	c.Args = append([]string{"-c", `for dir do echo >>"$dir/starts"; done 2>/dev/null; exec "$0"`,
		c.Command}, dirs...)
	c.Command, c.Policy.Sandbox = "/bin/sh", s
	c.Policy.Sandbox.Read = []string{filepath.Dir(proctest.Executable())}
	return c
}

// starts returns how many servers could write in each of dirs.
func starts(dirs ...string) []int {
	counts := make([]int, len(dirs))
	for i, dir := range dirs {
		text, _ := os.ReadFile(filepath.Join(dir, "starts"))
		counts[i] = strings.Count(string(text), "\n")
	}
	return counts
}

// Clauses X1, X3.
func TestServerIsRestrictedToTheRoots(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
		t.Run(mode.String(), func(t *testing.T) {
			a, b, out := folder(t), folder(t), folder(t)
			server := writing(t, sandbox.Settings{Mode: mode}, a, b, out)
			f := newFixture(t, mcpclient.Options{})
			f.change(roottest.Open(t, a), server)
			before := f.where("s").PID
			require.Equal(t, []int{1, 0, 0}, starts(a, b, out))
			f.change(roottest.Open(t, a), server)
			require.Equal(t, before, f.where("s").PID, "the same roots are no change")
			f.change(roottest.Open(t, a, b), server)
			require.NotEqual(t, before, f.where("s").PID)
			require.Equal(t, []int{2, 1, 0}, starts(a, b, out))
		})
	}
}

// Clause X1.
func TestServerLosesGrant(t *testing.T) {
	a, b := folder(t), folder(t)
	server := writing(t, sandbox.Settings{Mode: sandbox.Write}, a, b)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a, b), server)
	f.where("s")
	roots, err := workspace.NewRoots(a, []string{b})
	require.NoError(t, err)
	w, err := workspace.Open(t.Context(), roots.ReadOnlyAt([]string{b}), workspace.Options{})
	require.NoError(t, err)
	defer w.Close()
	f.change(w, server)
	f.where("s")
	require.Equal(t, []int{2, 1}, starts(a, b))
}

// A file in a root names its servers, and so cannot be given what is configured for a name.
//
// Clause X1.
func TestFoundServerIsGrantedNothing(t *testing.T) {
	c := mcpclient.Config{File: "/a/.mcp.json"}
	ports := hosts.Ports{Limited: true, List: []uint16{443}}
	c.Apply(acpmcp.Policy{Sandbox: sandbox.Settings{Mode: sandbox.Strict, Write: []string{"/w"},
		Read: []string{"/r"}, Ports: ports}})
	require.Equal(t, sandbox.Settings{Mode: sandbox.Strict, Ports: ports}, c.Policy.Sandbox)
}

// Clause X2.
func TestServerWithoutLandlock(t *testing.T) {
	if proctest.WithoutLandlock(t) {
		return
	}
	a, out := folder(t), folder(t)
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a), writing(t, sandbox.Settings{Mode: sandbox.Write, Optional: true}, a, out))
	f.where("s")
	require.Equal(t, []int{1, 1}, starts(a, out))
	f.host.shown.WaitFor(t, "MCP server s runs without a sandbox and can write wherever you can")

	f.change(roottest.Open(t, a), writing(t, sandbox.Settings{Mode: sandbox.Write}, a, out))
	_, err := f.try("s.where", "")
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.Equal(t, []int{1, 1}, starts(a, out), "it was not started")
}

func TestDeniedPathIsExplained(t *testing.T) {
	a, home := folder(t), folder(t)
	t.Setenv("HOME", home)
	out := filepath.Join(home, ".cache/tool")
	require.NoError(t, os.MkdirAll(out, 0o700))
	c := mcpclient.Config{Name: "s", Transport: acpmcp.Stdio, Command: "/bin/sh",
		Args: []string{"-c", `echo x >"$1/f"`, "sh", out}, Env: []mcpclient.Pair{{Name: "TMPDIR", Value: t.TempDir()}}}
	c.Policy.Sandbox.Mode = sandbox.Write
	f := newFixture(t, mcpclient.Options{})
	f.change(roottest.Open(t, a), c)
	_, err := f.try("s.where", "")
	require.Error(t, err)
	f.host.shown.WaitFor(t, "does not let MCP server s change `"+out+"/f`")
	f.host.shown.WaitFor(t, "add `"+out+"` to `sandboxWrite` of `mcpServers.s`")
}
