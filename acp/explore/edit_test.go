package explore

import (
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
		"several lines":         {"  a \n\n=======\n\tb\n\n", "  a \n", "\tb\n"},
		"without a last end":    {"a\n=======\nb", "a", "b"},
		"deleted":               {"a\n=======\n", "a", ""},
		"deleted, no last end":  {"a\n=======", "a", ""},
		"Windows":               {"a\r\nb\r\n=======\r\nc\r\n", "a\nb", "c"},
		"a second separator":    {"a\n=======\nb\n=======\nc\n", "a", "b\n=======\nc"},
		"a line that begins so": {"========\n=======\nb\n", "========", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseEdit(c.body)
			require.True(t, ok)
			require.Equal(t, tools.Replacement{Old: c.old, New: c.new}, got)
		})
	}
	for _, body := range []string{"", "a\nb", "=======\nb\n", "a\n ======= \nb"} {
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
