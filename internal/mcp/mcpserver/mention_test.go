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
