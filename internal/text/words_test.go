package text_test

import (
	"strings"
	"testing"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                          nil,
		"  a  b\tc\n":               {"a", "b", "c"},
		`a 'b c' "d e"f ''`:         {"a", "b c", "d ef", ""},
		`a\ b "c\"d" 'e\'`:          {"a b", `c"d`, `e\`},
		`C:\dir\x "D:\my dir\" \\s`: nil,
		`C:\dir\x.exe \\\\host\y`:   {`C:\dir\x.exe`, `\\host\y`},
		"$HOME *":                   {"$HOME", "*"},
	} {
		words, err := text.Words(line)
		if want == nil && line != "" {
			require.Error(t, err, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, want, words, line)
	}
}

func TestWords_quoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a"'\\ $\n]{0,6}`), 1, 5).Draw(t, "words")
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'"'"'`)+"'")
		}
		got, err := text.Words(strings.Join(quoted, " "))
		if err != nil || !equal(words, got) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

func equal(a, b []string) bool {
	return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
}

func TestJoinWords(t *testing.T) {
	for _, words := range [][]string{nil, {"a"}, {"a b", ""}, {`"`, `\`, `\"`, "'", "\n"}, {`C:\x y`}} {
		got, err := text.Words(text.JoinWords(words))
		require.NoError(t, err)
		require.Equal(t, words, got)
	}
}
