package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key is complete, or waits for the rest of what a terminal sends for it.
func TestKeysOfATerminal(t *testing.T) {
	for typed, want := range map[string][]string{
		"a\x06é日\r":               {"a", "\x06", "é", "日", keyEnter},
		"\x1b[A\x1bOB\x1b[5~":     {keyUp, keyDown, keyPageUp},
		"\x1bOH\x1b[4~\x1b[1;5Dx": {keyHome, keyEnd, "\x1b[1;5D", "x"}, // with Ctrl
		"\x1bb\x1bé\x1b\x7f":      {"\x1bb", "\x1bé", "\x1b\x7f"},      // with Alt
		"\x1b\x1b[B":              {keyEscape, keyDown},
		"\xff" + "a":              {"\xff", "a"},

		pasteStart + "rm -r\r\nthe\rend" + pasteEnd + "z": {pasteStart + "rm -r\nthe\nend", "z"},
		pasteStart + pasteEnd + keyDelete:                 {pasteStart, keyDelete},
	} {
		rest, key, keys := typed, "", []string(nil)
		for rest != "" {
			key, rest = nextKey(rest)
			require.NotEmpty(t, key, "%q", typed)
			keys = append(keys, key)
		}
		require.Equal(t, want, keys, "%q", typed)
	}
	for _, part := range []string{
		"", "\x1b", "\x1b[", "\x1bO", "\x1b[5", "\x1b[1;", "日"[:2], pasteStart, pasteStart + "words\r" + pasteEnd[:3],
	} {
		key, rest := nextKey(part)
		require.Empty(t, key, "%q", part)
		require.Equal(t, part, rest)
	}
}

func TestTypedText(t *testing.T) {
	for key, want := range map[string]string{
		"é": "é", pasteStart + "\na\x1b": "\na\x1b", pasteStart: "", keyUp: "", keyEnter: "", "\x1bb": "",
	} {
		require.Equal(t, want, typedText(key), "%q", key)
	}
	require.Equal(t, "rm -r the \ufffd[31mred y", lineOf("rm -r\nthe \x1b[31mred\ty"))
	require.Equal(t, strings.Repeat("日", 333), lineOf(strings.Repeat("日", 400)))
}

// What does not fit is wrapped: a notice keeps its beginning, and a question its end.
func TestBottomOfThePage(t *testing.T) {
	p := &picker{notice: "one two three"}
	require.Equal(t, []string{"one two ", "three"}, p.bottom(9, 10))
	require.Equal(t, []string{"one two "}, p.bottom(9, 2))
	p.ask = &pickerQuestion{text: "Delete it? ", typed: "abc"}
	require.Equal(t, []string{"Delete ", "it? ", "abc_"}, p.bottom(8, 10))
	require.Equal(t, []string{"abc_"}, p.bottom(8, 2))
	require.Len(t, (&picker{}).bottom(20, 10), 1)
}
