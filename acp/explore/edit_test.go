package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

func TestParseEdit(t *testing.T) {
	for name, c := range map[string]struct {
		body     string
		old, new string
	}{
		"one line":              {"a\n=======\nb\n", "a", "b"},
		"several lines":         {"  a \n  c \n=======\n\tb\n\n", "  a \n  c ", "\tb\n"},
		"without a last end":    {"a\n=======\nb", "a", "b"},
		"deleted":               {"a\n=======\n", "a", ""},
		"deleted, no last end":  {"a\n=======", "a", ""},
		"Windows":               {"a\r\nb\r\n=======\r\nc\r\n", "a\nb", "c"},
		"a second separator":    {"a\n=======\nb\n=======\nc\n", "a", "b\n=======\nc"},
		"a line that begins so": {"========\n=======\nb\n", "========", "b"},
		"blocks":                {"```\na\n```\n```go\nb\n```\n", "a", "b"},
		"blocks among blank lines": {" \n```\n\na\n\n```\n\n~~~\n\tb\n```\n~~~  \n\n", "\na\n",
			"\tb\n```"},
		"Windows, blocks": {"```\r\na\r\nb\r\n```\r\n```\r\nc\r\n```\r\n", "a\nb", "c"},
		"separators":      {"```\na\n=======\n```\n\n```\n=======\n```", "a\n=======", "======="},
		"an empty block":  {"```\na\n```\n```\n```", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseEdit(c.body)
			require.True(t, ok)
			require.Equal(t, tools.Replacement{Old: c.old, New: c.new}, got)
		})
	}
	for _, body := range []string{"", "a\nb", "=======\nb\n", "a\n ======= \nb",
		"a\n\n=======\nb", "a\n=======\n\nb", "```\n```\n```\nb\n```", "```\na\n```\n",
		"```\na\n```\n```\nb", "```\na\n```\n```\nb\n```\nc", "```\na\n```\n=======\n```\nb\n```"} {
		_, ok := parseEdit(body)
		require.False(t, ok, body)
	}
}

func TestEdit(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "one two\r\nthree\r\nfour\r\n"})
	talk := open(t, limits{}, cwd)
	talk.client.onAsk = selected("allow-once")
	talk.ask("/edit a.txt\ntwo\nthree\n=======\n2\n3\nmore")
	require.Equal(t, fileTree{"a.txt": "one 2\r\n3\r\nmore\r\nfour\r\n"}, files(t, cwd),
		"line ends are those of the file")
}

// codeCompanion returns a message of several Markdown blocks as CodeCompanion sends it: it sends
// the blocks of a section with an empty line between them, and what is under a heading not at all.
func codeCompanion(blocks ...string) string { return strings.Join(blocks, "\n\n") }

func TestChangesFromCodeCompanion(t *testing.T) {
	cwd := plant(t, fileTree{"a.md": "# One\ntwo\n\n\nthree\n"})
	talk := open(t, limits{}, cwd)
	talk.client.onAsk = selected("allow-once")
	talk.ask(codeCompanion("/edit a.md", "```\n# One\ntwo\n```", "```\n# 1\n\n\n2\n=======\n```"))
	require.Equal(t, fileTree{"a.md": "# 1\n\n\n2\n=======\n\n\nthree\n"}, files(t, cwd))
	talk.ask(codeCompanion("/write a.md", "````\n# New\n\n\n```\nx\n```\n````"))
	want := fileTree{"a.md": "# New\n\n\n```\nx\n```\n"}
	require.Equal(t, want, files(t, cwd))

	for _, ask := range []string{codeCompanion("/edit a.md"),
		codeCompanion("/edit a.md\n# New", "=======\n# Old"),
		codeCompanion("/edit a.md\nx", "=======", "y")} {
		require.Contains(t, talk.ask(ask).text(), "/edit PATH\n```\nold text\n```\n```\nnew text\n```\n")
		require.Equal(t, want, files(t, cwd))
	}
}
