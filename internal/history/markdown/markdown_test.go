package markdown

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	var r Reader
	for _, c := range []struct {
		line string
		want Line
	}{
		{"# Title #", Line{Kind: Heading, Text: "Title"}},
		{"  - item", Line{Kind: Item, Indent: "  ", Text: "item"}},
		{"> said", Line{Kind: Quote, Text: "said"}},
		{"- - -", Line{Kind: Rule}},
		{"  1. first", Line{Kind: Item, Indent: "  ", Number: "1", Text: "first"}},
		{"goes on", Line{Text: "goes on"}},
		{"12) next", Line{Kind: Item, Number: "12", Text: "next"}},
		{"", Line{}},
		{"It was in", Line{Text: "It was in"}},
		{"1996. Then", Line{Text: "1996. Then"}},
		{"1. first", Line{Kind: Item, Number: "1", Text: "first"}},
		{"~~~~go", Line{Kind: Fence}},
		{"~~~", Line{Kind: Code, Text: "~~~"}},
		{"# a", Line{Kind: Code, Text: "# a"}},
		{"~~~~", Line{Kind: Fence}},
		{"", Line{}},
	} {
		require.Equal(t, c.want, r.Line(c.line), c.line)
	}
}

func TestCells(t *testing.T) {
	require.Equal(t, []string{"a|b", "", "c"}, Cells(` | a\|b || c |`))
	require.Equal(t, []string{"a", `b|`}, Cells(`a|b\|`))
	require.True(t, IsTable("| a | b |", "|:--|--:|"))
	require.False(t, IsTable("| a | b |", "|---|"))
	require.False(t, IsTable("| a |", "| |"))
	require.False(t, IsTable("| a | b |", "|-:-|--|"))
}

func TestSpans(t *testing.T) {
	require.Equal(t, []Span{
		{Text: "a "}, {Style: Strong, Text: "b c"}, {Text: " *d "}, {Style: Monospace, Text: "e*f*"},
		{Text: " "}, {Style: Emphasis, Text: "g"}, {Text: " "},
		{Style: Link, Text: "h", URL: "https://i"},
	}, Spans("a **b `c`** \\*d `e*f*` _g_ [h](https://i)"))
	require.Equal(t, "see h (https://i)", Text("**see** [h](https://i)"))
}
