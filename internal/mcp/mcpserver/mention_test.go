package mcpserver

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
