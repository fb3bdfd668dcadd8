package mcprelay_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/child"
)

// tick is how often what must happen is looked for.
const tick = 20 * time.Millisecond

// node is a server from npm. Without the packages the test is skipped, except in CI.
func node(t testing.TB, script string) child.Command {
	t.Helper()
	const dir = "../../testdata/node-mcp"
	path, err := filepath.Abs(filepath.Join(dir, script))
	require.NoError(t, err)
	_, installed := os.Stat(filepath.Join(dir, "node_modules"))
	_, noNode := exec.LookPath("node")
	if installed != nil || noNode != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the MCP servers of npm are not installed: run npm ci in testdata/node-mcp, or make test")
		}
		t.Skip("the MCP servers of npm are not installed: run npm ci in testdata/node-mcp, or make test")
	}
	return child.Command{Path: "node", Args: []string{path}}
}

var uriLine = regexp.MustCompile(`(?m)^   URI: (.*)$`)

// echoed are the URIs that server-everything says it was told, a line each.
func (c client) echoed() string {
	c.t.Helper()
	var all []string
	for _, m := range uriLine.FindAllStringSubmatch(c.call("get-roots-list"), -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, "\n")
}

func TestM1_M11_ServerEverythingSeesTheSessionsRoots(t *testing.T) {
	for name, wrong := range map[string][]string{"by a client without roots": nil, "by one with a wrong root": {"file:///wrong"}} {
		t.Run(name, func(t *testing.T) {
			server := node(t, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
			dirs := folders(t, "z last first", "a", "per%20cent", "hash#", "ü", "日本語")
			p := publish(t, dirs[:4]...)
			o := options()
			if wrong != nil {
				o = &mcp.ClientOptions{}
			}
			c := connect(t, behind(p, server), o, wrong...)
			require.Equal(t, uris(t, dirs[:4]...), c.echoed())
			p.Set(snapshot(t, dirs[5], dirs[4], dirs[0]))
			require.Eventually(t, func() bool { return c.echoed() == uris(t, dirs[5], dirs[4], dirs[0]) }, patience, tick)
		})
	}
}

func TestM1_ServerFilesystemWorksInTheSessionsRoots(t *testing.T) {
	server := node(t, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	dirs := folders(t, "z", "a", "m")
	p := publish(t, dirs[:2]...)
	c := connect(t, behind(p, server), options())
	allowed := func(dirs ...string) func() bool {
		return func() bool {
			text, err := c.try("list_allowed_directories")
			return err == nil && text == "Allowed directories:\n"+strings.Join(dirs, "\n")
		}
	}
	require.Eventually(t, allowed(dirs[:2]...), patience, tick)
	p.Set(snapshot(t, dirs[2], dirs[1]))
	require.Eventually(t, allowed(dirs[2], dirs[1]), patience, tick)
}

func TestM7_AModernServerOfTheTypeScriptPackagesSeesTheSessionsRoots(t *testing.T) {
	server := node(t, "modern.mjs")
	dirs := folders(t, "z", "a", "m")
	p := publish(t, dirs[:2]...)
	c := connect(t, behind(p, server), options())
	require.Equal(t, "2026-07-28", c.InitializeResult().ProtocolVersion)
	require.Equal(t, uris(t, dirs[:2]...), c.call("roots"))
	p.Set(snapshot(t, dirs[2]))
	require.Eventually(t, func() bool { return c.call("roots") == uris(t, dirs[2]) }, patience, tick)
}
