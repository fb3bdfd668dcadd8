package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// A fork has the roots that its request gives, whatever its source has.
func TestA14_AForkInheritsNoRoots(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d := folder(t), folder(t), folder(t)
	source := c.open(a, b)
	for given, want := range map[string][]string{
		"": {}, "[]": {}, encode([]string{d}): {d}, encode([]string{d, b}): {d, b},
	} {
		for _, cwd := range []string{a, d, b} {
			var fork struct{ SessionID string }
			params := altered(altered(rootsParams(source, cwd), "additionalDirectories", given), "mcpServers", "")
			require.NoError(t, json.Unmarshal(c.call("session/fork", params), &fork))
			roots := []string{}
			for _, root := range want {
				if root != cwd {
					roots = append(roots, root)
				}
			}
			got := c.find(fork.SessionID)
			require.Equal(t, cwd, got.Cwd)
			require.Equal(t, roots, got.AdditionalDirectories, "given %s", given)
			used := "[" + cwd
			for _, root := range roots {
				used += ", " + root
			}
			require.Equal(t, []string{used + "]"}, c.texts(fork.SessionID, "roots"))
			require.Equal(t, []string{b}, c.find(source).AdditionalDirectories)
		}
	}
}
