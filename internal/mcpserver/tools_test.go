package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// listTools returns the result of tools/list.
func listTools(t *testing.T) (list struct{ Tools []map[string]any }, size int) {
	t.Helper()
	p := start(t, Options{})
	p.begin(withoutRoots)
	p.write(request("tools/list", "{}"))
	result, err := json.Marshal(p.answerTo(1).Result)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(result, &list))
	return list, len(result)
}

// The list of tools is part of every request to a model.
func TestToolListIsSmall(t *testing.T) {
	list, size := listTools(t)
	require.Less(t, size, 8_000)
	t.Log(len(list.Tools), "tools in", size, "bytes")
	for _, tool := range list.Tools {
		require.NotContains(t, tool, "outputSchema", tool["name"])
	}
}

// Some clients show a model structuredContent instead of the text.
func TestResultsOfFileToolsAreText(t *testing.T) {
	roots, err := workspace.NewRoots(tree(t, map[string]string{"f": "text\n"}), nil)
	require.NoError(t, err)
	p := start(t, Options{Roots: roots})
	p.begin(withoutRoots)
	for id, c := range []struct{ tool, arguments string }{
		{"read_file", `{"path":"f"}`}, {"list_directory", `{}`}, {"find_files", `{}`}, {"search", `{"pattern":"x"}`},
		{"edit_file", `{"path":"f","old_text":"text","new_text":"more"}`},
	} {
		p.write(call(id+1, c.tool, c.arguments))
		m := p.answerTo(float64(id + 1))
		require.NotEmpty(t, m.text())
		require.NotContains(t, m.Result, "structuredContent", c.tool)
	}
}
