package mcpserver

import (
	"encoding/json"
	"path/filepath"
	"strings"
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

// Clause D2.
func TestResultsMentionTheInstructionsOfDirectories(t *testing.T) {
	a := tree(t, map[string]string{"AGENTS.md": "Of a.", "f": "f"})
	b := tree(t, map[string]string{"x/AGENTS.md": "Of x.", "x/f": "text", "x/y/CLAUDE.md": "Of y.",
		"x/y/f": "text", "z/AGENTS.md": "Of z.", "z/f": ""})
	p := serving(t, a, b)
	const mark = "has instructions"
	result := func(tool, arguments string) string {
		return p.ask(tool, arguments).text()
	}
	path := func(rel string) string { return read(filepath.Join(b, filepath.FromSlash(rel))) }
	require.Contains(t, result("read_file", `{"path":"f"}`), "[What is in \""+a+
		"\" has instructions: read \""+filepath.Join(a, "AGENTS.md")+"\" before you go on.]")
	require.NotContains(t, result("list_directory", `{}`), mark, "only once")
	text := result("read_file", path("x/f"))
	require.True(t, strings.HasSuffix(text, "[What is in \""+filepath.Join(b,
		"x")+"\" has instructions: read \""+filepath.Join(b, "x", "AGENTS.md")+
		"\" before you go on.]\n"), text)
	text = result("list_directory", path("x/y"))
	require.Contains(t, text, filepath.Join(b, "x", "y", "CLAUDE.md"))
	require.NotContains(t, text, filepath.Join(b, "x", "AGENTS.md"), "D3: only once")
	require.NotContains(t, result("read_file", path("x/y/f")), mark)
	require.NotContains(t, result("read_file", path("z/AGENTS.md")), mark,
		"D3: it is reading them")
	require.NotContains(t, result("read_file", path("z/f")), mark)
}

// Rules of every kind are mentioned with the files that they are for.
//
// Clause D2.
func TestResultsMentionRules(t *testing.T) {
	for file, condition := range map[string]string{
		".cursor/rules/go.mdc":                    "globs: '**/*.go'",
		".github/instructions/go.instructions.md": "applyTo: '**/*.go'",
		".claude/rules/go.md":                     "paths: ['**/*.go']",
		".claude/rules/deep/go.md":                "paths: ['x/*.go']",
		".clinerules/go.md":                       "paths: ['**/*.go']",
		".windsurf/rules/go.md":                   "trigger: glob\nglobs: '**/*.go'",
		".kiro/steering/go.md":                    "inclusion: fileMatch\nfileMatchPattern: '**/*.go'",
		".continue/rules/go.md":                   "globs: '**/*.go'",
		".github/copilot-instructions.md":         "",
		".kilocode/rules/all.md":                  "",
		"CRUSH.md":                                "",
	} {
		t.Run(file, func(t *testing.T) {
			content := "Be careful."
			if condition != "" {
				content = "---\n" + condition + "\n---\n" + content
			}
			p := serving(t, tree(t, map[string]string{
				file: content, "x/a.go": "", "x/b.go": "", "x/a.txt": ""}))
			mention := filepath.FromSlash(file) + `" before you go on`
			text := p.ask("read_file", read("x/a.txt")).text()
			require.Equal(t, condition == "", strings.Contains(text, mention), text)
			p.write(call(2, "read_file", read("x/a.go")))
			text += p.answerTo(2).text()
			require.Contains(t, text, mention)
			require.NotContains(t, p.ask("read_file", read("x/b.go")).text(), mention, "only once")
		})
	}
}
