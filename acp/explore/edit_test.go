package explore

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseEdit(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want edit
	}{
		"one line":          {"<<<<<<< old\na\n=======\nb\n>>>>>>> new\n", edit{[]string{"a"}, []string{"b"}}},
		"no labels":         {"<<<<<<<\na\n=======\nb\n>>>>>>>", edit{[]string{"a"}, []string{"b"}}},
		"lines as they are": {"<<<<<<<\n  a \n\n=======\n\tb\n\n>>>>>>>\n\n", edit{[]string{"  a ", ""}, []string{"\tb", ""}}},
		"taken out":         {"<<<<<<<\na\n=======\n>>>>>>>", edit{[]string{"a"}, []string{}}},
		"of Windows":        {"<<<<<<<\r\na\r\n=======\r\nb\r\n>>>>>>>\r\n", edit{[]string{"a"}, []string{"b"}}},
		"a conflict": {
			"<<<<<<<<\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n========\na\n>>>>>>>>",
			edit{[]string{"<<<<<<< HEAD", "a", "=======", "b", ">>>>>>> x"}, []string{"a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseEdit(c.body)
			require.NoError(t, err)
			require.Equal(t, c.want, e)
		})
	}
}

func TestWhatIsNoEditSaysWhatItLacks(t *testing.T) {
	for body, says := range map[string]string{
		"":                                  "the first line below must be `<<<<<<<`",
		"a\nb":                              "the first line below must be `<<<<<<<`",
		"<<<<<< old\na":                     "the first line below must be `<<<<<<<`",
		"<<<<<<<old\na":                     "the first line below must be `<<<<<<<`",
		"<<<<<<<":                           "the last line must be `>>>>>>>`",
		"<<<<<<<\na\n=======\nb":            "the last line must be `>>>>>>>`",
		"<<<<<<<\n>>>>>>>":                  "must stand `=======`",
		"<<<<<<<\na\nb\n>>>>>>>":            "must stand `=======`",
		"<<<<<<<<\na\n=======\nb\n>>>>>>>>": "must stand `========`",
		"<<<<<<<\n=======\nb\n>>>>>>>":      "there are no old lines",
		"<<<<<<<\na\n=======\nb\n=======\n>>>>>>>":     "make all three markers longer",
		"<<<<<<<\na\n=======\nb\n>>>>>>> x\n>>>>>>> y": "make all three markers longer",
	} {
		_, err := parseEdit(body)
		require.ErrorContains(t, err, says, body)
	}
}

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		old, new []string
		want     string
	}{
		"first":                    {"a\nb\nc\n", []string{"a"}, []string{"x", "y"}, "x\ny\nb\nc\n"},
		"several":                  {"a\nb\nc\n", []string{"a", "b"}, []string{"x"}, "x\nc\n"},
		"taken out":                {"a\nb\nc\n", []string{"b"}, nil, "a\nc\n"},
		"all taken out":            {"a\nb\n", []string{"a", "b"}, nil, ""},
		"last, without an end":     {"a\nb", []string{"b"}, []string{"x", "y"}, "a\nx\ny"},
		"only one, without an end": {"a", []string{"a"}, []string{"x", "y"}, "x\ny"},
		"line ends of Windows":     {"a\r\nb\r\nc\r\n", []string{"b"}, []string{"x", "y"}, "a\r\nx\r\ny\r\nc\r\n"},
		"an empty line":            {"a\n\nb\n", []string{""}, []string{"x"}, "a\nx\nb\n"},
		"not within lines":         {"aa\na\n", []string{"a"}, []string{"x"}, "aa\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edit{c.old, c.new}.apply(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	for text, old := range map[string][]string{"": {""}, "a\n": {""}, "ab\n": {"a"}, "a b\n": {"a", "b"}, "a\n a\n": {"a "}} {
		_, err := edit{old, nil}.apply(text)
		require.ErrorIs(t, err, errNotThere, text)
	}
	_, err := edit{[]string{"x", "x"}, nil}.apply("x\nx\nx\n")
	require.ErrorContains(t, err, "2 times, first at lines 1 and 2", "also where they overlap")
}

// What an edit makes of a text, the opposite edit undoes, where it is unique too.
func TestAnEditIsUndoneByItsOpposite(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a", "b", "c", " d", "=======", "<<<<<<<"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 8).Draw(t, "lines")
		first := rapid.IntRange(0, len(lines)-1).Draw(t, "first")
		after := rapid.IntRange(first+1, len(lines)).Draw(t, "after")
		e := edit{lines[first:after], rapid.SliceOfN(line, 1, 3).Draw(t, "new")}

		mark := func(character string) string { return strings.Repeat(character, 8) + "\n" }
		joined := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
		parsed, err := parseEdit(mark("<") + joined(e.old) + mark("=") + joined(e.new) + mark(">"))
		require.NoError(t, err)
		require.True(t, slices.Equal(e.old, parsed.old) && slices.Equal(e.new, parsed.new))

		ending := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending")
		text := strings.Join(lines, ending) + ending
		changed, err := e.apply(text)
		if err != nil {
			return
		}
		require.Equal(t, strings.Join(slices.Concat(lines[:first], e.new, lines[after:]), ending)+ending, changed)
		if back, err := (edit{e.new, e.old}).apply(changed); err == nil {
			require.Equal(t, text, back)
		}
	})
}
