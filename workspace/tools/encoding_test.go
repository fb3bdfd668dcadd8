package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Text in another encoding is read, found and changed as text, and stays in its encoding.
func TestOtherEncodings(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		stored        encoding
	}{
		"Latin-1": {"caf\xe9\nna\xefve\nplain text\n", "caf\xe9s\nna\xefve\nplain text\n", windows1252},
		"Windows": {"\x93caf\xe9\x94 \x80\nna\xefve, plain text\n", "\x93caf\xe9s\x94 \x80\nna\xefve, plain text\n", windows1252},
		"UTF-16LE": {"\xff\xfec\x00a\x00f\x00\xe9\x00\n\x00n\x00a\x00\xef\x00v\x00e\x00",
			"\xff\xfec\x00a\x00f\x00\xe9\x00s\x00\n\x00n\x00a\x00\xef\x00v\x00e\x00", utf16LE},
		"UTF-16BE": {"\xfe\xff\x00c\x00a\x00f\x00\xe9\x00\n\x00n\x00a\x00\xef\x00v\x00e",
			"\xfe\xff\x00c\x00a\x00f\x00\xe9\x00s\x00\n\x00n\x00a\x00\xef\x00v\x00e", utf16BE},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"f": c.before})
			read := h.read(args{"path": "f"})
			require.Contains(t, read.Content, "café")
			require.Equal(t, c.stored, read.Stored)
			require.Contains(t, read.String(), ", stored as "+string(c.stored)+"\n")
			require.Contains(t, h.said("read_file", args{"path": "f", "tail": 2}), "naïve")
			require.Contains(t, h.said("search", args{"pattern": "na.ve"}), "\n2:naïve")

			made := h.said("edit_file", args{"path": "f", "old_text": "café", "new_text": "cafés",
				"if_version": read.Version})
			require.Contains(t, made, "the file is still "+string(c.stored)+" text\n")
			got, err := os.ReadFile(filepath.Join(app, "f"))
			require.NoError(t, err)
			require.Equal(t, c.after, string(got))
			if c.stored == windows1252 {
				require.ErrorContains(t, h.refused("edit_file", args{"path": "f", "old_text": "cafés",
					"new_text": "喫茶店"}), `the file is Windows-1252 text, which cannot have '喫'`)
			}
			h.said("delete_file", args{"path": "f"})
		})
	}
}

// A few bytes that are not UTF-8 do not make a file another encoding. They are shown, stay in the
// file, and are said.
func TestBrokenUTF8(t *testing.T) {
	long := strings.Repeat("a line of a log\n", 20)
	for name, c := range map[string]struct{ before, shown string }{
		"a stray byte":           {"naïve café — \xff“x”\n", "naïve café — \uefff“x”"},
		"a byte of Latin-1":      {"Überblick: caf\xe9 und Größe\n", "Überblick: caf\uefe9 und Größe"},
		"a cut end":              {"größer\n€ und \xf0\x9f\x98", "€ und \ueff0\uef9f\uef98"},
		"a cut beginning":        {"\x98\x80 größer\n", "\uef98\uef80 größer"},
		"a log cut at both ends": {"\x9f\x8d\x80 " + long + "\xe2\x82", "\uef9f\uef8d\uef80 a line"},
		"an undefined byte":      {long + "x\x81y\n", "x\uef81y"},
		"other planes":           {"日本語 \x80 日本語\n", "日本語 \uef80 日本語"},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"f": c.before + "\nold\n"})
			read := h.read(args{"path": "f"})
			require.Contains(t, read.Content, c.shown)
			require.Contains(t, read.String(), "bytes that are not")
			require.Len(t, h.found("search", args{"pattern": "^old$"}), 1)
			made := h.said("edit_file", args{"path": "f", "old_text": "old", "new_text": "neü"})
			require.Contains(t, made, "bytes that are not")
			got, err := os.ReadFile(filepath.Join(app, "f"))
			require.NoError(t, err)
			require.Equal(t, c.before+"\nneü\n", string(got))
		})
	}
	_, stored, ok := decode([]byte("caf\xe9"))
	require.True(t, ok)
	require.Equal(t, windows1252, stored, "it may be cut, but nothing else is UTF-8")
	_, _, ok = decode([]byte("größer \uef80 \x80"))
	require.False(t, ok, "it could not be told which of the two is a byte")
}

// Clause E1.
func TestOtherFilesAreBinary(t *testing.T) {
	_, h := servePlanted(t, fileTree{"nul": "a\x00b", "control": "caf\xe9 \x01", "cyrillic": "\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0",
		"half": "\xff\xfea", "surrogate": "\xff\xfe\x00\xd8a\x00", "undefined": "plain text \x81"})
	for _, name := range []string{"nul", "control", "cyrillic", "half", "surrogate", "undefined"} {
		h.refused("read_file", args{"path": name})
		h.refused("edit_file", args{"path": name, "old_text": "a", "new_text": "b"})
	}
}

// A byte order mark is not a part of the first line.
func TestSearchAfterAByteOrderMark(t *testing.T) {
	_, h := servePlanted(t, fileTree{"f": bom + "first\nfirst\n"})
	require.Contains(t, h.said("search", args{"pattern": "^first$"}), "\n1:first\n2:first\n")
}
