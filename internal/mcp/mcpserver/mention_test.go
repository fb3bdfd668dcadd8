package mcpserver

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause D2.
func TestResultsMentionTheInstructionsOfDirectories(t *testing.T) {
	a := tree(t, map[string]string{"AGENTS.md": "Of a.", "f": "f"})
	b := tree(t, map[string]string{"x/AGENTS.md": "Of x.", "x/f": "text", "x/y/CLAUDE.md": "Of y.",
		"x/y/f": "text", "z/AGENTS.md": "Of z.", "z/f": ""})
	roots, err := workspace.NewRoots(a, []string{b})
	require.NoError(t, err)
	p := start(t, Options{Roots: roots})
	p.begin(withoutRoots)
	const mark = "has instructions"
	result := func(id int, tool, arguments string) string {
		p.write(call(id, tool, arguments))
		return p.answerTo(float64(id)).text()
	}
	path := func(rel string) string { return read(filepath.Join(b, filepath.FromSlash(rel))) }
	require.Contains(t, result(9, "read_file", `{"path":"f"}`), "[What is in \""+a+
		"\" has instructions: read \""+filepath.Join(a, "AGENTS.md")+"\" before you go on.]")
	require.NotContains(t, result(10, "list_directory", `{}`), mark, "only once")
	text := result(11, "read_file", path("x/f"))
	require.True(t, strings.HasSuffix(text, "[What is in \""+filepath.Join(b,
		"x")+"\" has instructions: read \""+filepath.Join(b, "x", "AGENTS.md")+
		"\" before you go on.]\n"), text)
	text = result(12, "list_directory", path("x/y"))
	require.Contains(t, text, filepath.Join(b, "x", "y", "CLAUDE.md"))
	require.NotContains(t, text, filepath.Join(b, "x", "AGENTS.md"), "D3: only once")
	require.NotContains(t, result(13, "read_file", path("x/y/f")), mark)
	require.NotContains(t, result(14, "read_file", path("z/AGENTS.md")), mark,
		"D3: it is reading them")
	require.NotContains(t, result(15, "read_file", path("z/f")), mark)
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
			p := start(t, Options{Roots: rootSet(t, tree(t, map[string]string{file: content, "x/a.go": "", "x/b.go": "", "x/a.txt": ""}))})
			p.begin(withoutRoots)
			mention := filepath.FromSlash(file) + `" before you go on`
			p.write(call(1, "read_file", read("x/a.txt")))
			text := p.answerTo(1).text()
			require.Equal(t, condition == "", strings.Contains(text, mention), text)
			p.write(call(2, "read_file", read("x/a.go")))
			text += p.answerTo(2).text()
			require.Contains(t, text, mention)
			p.write(call(3, "read_file", read("x/b.go")))
			require.NotContains(t, p.answerTo(3).text(), mention, "only once")
		})
	}
}
