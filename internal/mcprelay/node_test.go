package mcprelay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/npmtest"
)

// tick is how often what must happen is looked for.
const tick = 20 * time.Millisecond

// from is the command of a server from npm.
func from(command []string) process.Command {
	return process.Command{Path: command[0], Args: command[1:]}
}

// echoed are the URIs that server-everything says it was told, a line each.
func (c client) echoed() string {
	c.t.Helper()
	return strings.Join(npmtest.Echoed(c.call("get-roots-list")), "\n")
}

func TestM1_M11_ServerEverythingSeesTheSessionsRoots(t *testing.T) {
	for name, wrong := range map[string][]string{"by a client without roots": nil, "by one with a wrong root": {"file:///wrong"}} {
		t.Run(name, func(t *testing.T) {
			server := from(npmtest.Everything(t))
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
	server := from(npmtest.Filesystem(t))
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
	server := from(npmtest.Modern(t))
	dirs := folders(t, "z", "a", "m")
	p := publish(t, dirs[:2]...)
	c := connect(t, behind(p, server), options())
	require.Equal(t, "2026-07-28", c.InitializeResult().ProtocolVersion)
	require.Equal(t, uris(t, dirs[:2]...), c.call("roots"))
	p.Set(snapshot(t, dirs[2]))
	require.Eventually(t, func() bool { return c.call("roots") == uris(t, dirs[2]) }, patience, tick)
}
