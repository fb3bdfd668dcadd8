package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.Less(t, size, 8<<10)
	t.Log(len(list.Tools), "tools in", size, "bytes")
	for _, tool := range list.Tools {
		require.NotContains(t, tool, "outputSchema", tool["name"])
	}
}

func TestHintsOfTools(t *testing.T) {
	list, _ := listTools(t)
	hints := map[string][]any{} // destructive and idempotent, of tools that change files
	for _, tool := range list.Tools {
		name, _ := tool["name"].(string)
		a, _ := tool["annotations"].(map[string]any)
		require.Equal(t, false, a["openWorldHint"], name)
		if a["readOnlyHint"] == true {
			require.NotContains(t, a, "destructiveHint", name)
			continue
		}
		hints[name] = []any{a["destructiveHint"], a["idempotentHint"]}
	}
	require.Equal(t, map[string][]any{
		"write_file": {true, true}, "edit_file": {true, false}, "create_directory": {false,
			true}, "delete_file": {true, true}, "move_file": {true, false},
	}, hints)
}

func TestMediaContent(t *testing.T) {
	dir := tree(t, map[string]string{"image": "GIF89a;", "sound": "ID3;", "document": "%PDF-1.7"})
	p := serving(t, dir)
	for _, c := range []struct {
		file string
		want map[string]any
	}{
		{"image", map[string]any{"type": "image", "mimeType": "image/gif", "data": "R0lGODlhOw=="}},
		{"sound", map[string]any{"type": "audio", "mimeType": "audio/mpeg", "data": "SUQzOw=="}},
		{"document", map[string]any{"type": "resource", "resource": map[string]any{
			"uri": dirURI(t, dir) +
				"/document", "mimeType": "application/pdf", "blob": "JVBERi0xLjc="}}},
	} {
		m := p.ask("read_media", read(c.file))
		content, _ := m.Result["content"].([]any)
		require.Len(t, content, 2, m.line)
		require.Contains(t, m.text(), c.file)
		require.Equal(t, c.want, content[1])
	}
}

// Some clients show a model structuredContent instead of the text.
func TestResultsOfFileToolsAreText(t *testing.T) {
	p := serving(t, tree(t, map[string]string{"f": "text\n"}))
	for _, c := range []struct{ tool, arguments string }{
		{"read_file", `{"path":"f"}`}, {"list_directory", `{}`}, {"find_files", `{}`}, {"search",
			`{"pattern":"x"}`},
		{"edit_file", `{"path":"f","old_text":"text","new_text":"more"}`},
	} {
		m := p.ask(c.tool, c.arguments)
		require.NotEmpty(t, m.text())
		require.NotContains(t, m.Result, "structuredContent", c.tool)
	}
}

// Gemini CLI offers models this argument for the tools of all MCP servers, and passes it on.
func TestFileToolsIgnoreWaitForPrevious(t *testing.T) {
	p := serving(t, tree(t, map[string]string{"f": "text\n"}))
	for _, c := range []struct{ arguments, want string }{
		{`{"wait_for_previous":true,"path":"f"}`, "\ntext\n"},
		{`{"path":"f","wait_for_previous":false}`, "\ntext\n"},
		{`{"wait_for_previous":true}`, "path is missing"},
		{`{"path":"f","wait_for_previous":true,"wait":true}`, `[ignored: there is no argument "wait" (`},
	} {
		require.Contains(t, p.ask("read_file", c.arguments).text(), c.want, c.arguments)
	}
}
