package mcpclient_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

func TestToolNames(t *testing.T) {
	f := serving(t, mcpclient.Options{}, mcptest.Self("a b", "raw"), mcptest.Self("a_b", "raw"), mcptest.Self("a.b", "raw"), mcptest.Self("a b", "raw", "X=y"), mcptest.Self(strings.Repeat("long", 40), "raw"), mcptest.Self("", "raw"))
	tools, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	long := strings.Repeat("long", 16)
	require.Equal(t, []string{
		"a_b_2.count", "a_b_2.a_b_2", "a_b_2.a_b", "a_b.count", "a_b.a_b_2", "a_b.a_b", "a_b_3.count", "a_b_3.a_b_2", "a_b_3.a_b",
		"a_b_4.count", "a_b_4.a_b_2", "a_b_4.a_b", long + ".count", long + ".a_b_2", long + ".a_b", "_.count", "_.a_b_2", "_.a_b",
	}, names)
	require.Equal(t, "a b", tools[1].Remote)
	require.Equal(t, "a b", tools[1].Server)
}

func TestCallTimeout(t *testing.T) {
	f := serving(t, mcpclient.Options{}.With(mcpclient.Limits{CallTimeout: 50 * time.Millisecond}), mcptest.Self("s", "hang"))
	_, err := f.try("s.count", "")
	require.ErrorContains(t, err, "has not answered the call or reported progress within 50ms")
	c := mcptest.Self("p", "hang")
	c.Policy.CallTimeout = 30 * time.Millisecond
	f.change(roottest.Open(t, folder(t)), c)
	_, err = f.try("p.count", "")
	require.ErrorContains(t, err, "within 30ms", "the server's own limit")
}

// Clause M7.
func TestLogMessages(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			f := serving(t, mcpclient.Options{}, mcptest.Self("noted", "sdk", "TOKEN=hunter2-secret", "REVISION="+revision))
			f.call("noted.note", "{}")
			f.call("noted.roots", "{}")
			f.call("noted.roots", "{}")
			require.Eventually(t, func() bool { return f.logs.Count("to stderr, with [secret]") == 1 }, patience, 5*time.Millisecond)
			require.Contains(t, f.logs.String(), "server=noted")
			require.NotContains(t, f.logs.String(), "hunter2")
			warnings := f.Servers()[0].Warnings
			if revision == eras[0] {
				require.Eventually(t, func() bool {
					f.call("noted.note", "{}")
					return f.logs.Count("by message, with [secret]") > 0
				}, patience, 50*time.Millisecond)
				require.Empty(t, warnings, "that revision does not deprecate them")
				return
			}
			require.Equal(t, 1, f.logs.Count("asks for roots, which MCP deprecates"), "roots are warned of once")
			require.Equal(t, 1, f.logs.Count("sends log messages over MCP"))
			require.Len(t, warnings, 2)
			require.Contains(t, strings.Join(warnings, "\n"), "${roots}", "with what replaces them")
		})
	}
}
