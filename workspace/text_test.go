package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestReadText(t *testing.T) {
	g := newGrounds(t)
	for name, c := range map[string]struct {
		file string
		o    workspace.TextOptions
		want workspace.Text
		next int
	}{
		"empty": {"", workspace.TextOptions{}, workspace.Text{First: 1}, 0},
		"one line": {"a\n", workspace.TextOptions{},
			workspace.Text{Content: "a\n", First: 1, Lines: 1, Total: 1}, 0},
		"no last end": {"a\nb", workspace.TextOptions{},
			workspace.Text{Content: "a\nb", First: 1, Lines: 2, Total: 2}, 0},
		"ends are kept": {"a\r\nb\rc\n", workspace.TextOptions{},
			workspace.Text{Content: "a\r\nb\rc\n", First: 1, Lines: 2, Total: 2}, 0},
		"from a line on": {"a\nb\nc\n", workspace.TextOptions{First: 2},
			workspace.Text{Content: "b\nc\n", First: 2, Lines: 2, Total: 3}, 0},
		"past the end": {"a\nb\n", workspace.TextOptions{First: 4},
			workspace.Text{First: 4, Total: 2}, 0},
		"some lines": {"a\nb\nc\nd\n", workspace.TextOptions{First: 2, MaxLines: 2},
			workspace.Text{Content: "b\nc\n", First: 2, Lines: 2, Total: 4,
				Cut: workspace.CutByLines}, 4},
		"exactly as many lines": {"a\nb\n", workspace.TextOptions{MaxLines: 2},
			workspace.Text{Content: "a\nb\n", First: 1, Lines: 2, Total: 2}, 0},
		"exactly as many bytes": {"aa\nbb\n", workspace.TextOptions{MaxBytes: 6},
			workspace.Text{Content: "aa\nbb\n", First: 1, Lines: 2, Total: 2}, 0},
		"cut by bytes": {"aa\nbb\ncc", workspace.TextOptions{MaxBytes: 5},
			workspace.Text{Content: "aa\n", First: 1, Lines: 1, Total: 3,
				Cut: workspace.CutByBytes}, 2},
		"the last line does not fit": {"aa\nbbb", workspace.TextOptions{MaxBytes: 5},
			workspace.Text{Content: "aa\n", First: 1, Lines: 1, Total: 2,
				Cut: workspace.CutByBytes}, 2},
		"cut in a line": {"äöü\nb\n", workspace.TextOptions{MaxBytes: 5},
			workspace.Text{Content: "äö", First: 1, Lines: 1, Total: 2,
				Cut: workspace.CutInLine}, 2},
		"the middle of a line": {"a\näöü\r\nb\n", workspace.TextOptions{First: 2, Skip: 2, MaxBytes: 3},
			workspace.Text{Content: "ö", First: 2, Lines: 1, Skipped: 2, Total: 3,
				Cut: workspace.CutInLine}, 3},
		"the rest of a line": {"äöü\r\nb\n", workspace.TextOptions{Skip: 3},
			workspace.Text{Content: "ü\r\nb\n", First: 1, Lines: 2, Skipped: 4, Total: 2}, 0},
		"more than a line": {"ab\nc\n", workspace.TextOptions{Skip: 9},
			workspace.Text{Content: "\nc\n", First: 1, Lines: 2, Skipped: 2, Total: 2}, 0},
		"more than the last line": {"ab\ncd", workspace.TextOptions{First: 2, Skip: 9},
			workspace.Text{First: 2, Skipped: 2, Total: 2}, 0},
		"byte order mark": {"\xef\xbb\xbfa\n", workspace.TextOptions{},
			workspace.Text{Content: "a\n", First: 1, Lines: 1, Total: 1, BOM: true}, 0},
		"only a mark": {"\xef\xbb\xbf", workspace.TextOptions{},
			workspace.Text{First: 1, BOM: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(g.a, "text"), c.file)
			got, err := g.ws.ReadText(t.Context(), "text", c.o)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(g.a, "text"), got.Ref.Path())
			c.want.Ref, c.want.Size = got.Ref, int64(len(c.file))
			require.Equal(t, c.want, got)
			require.Equal(t, c.next, got.Next())
		})
	}
}

func TestReadTextNotText(t *testing.T) {
	g := newGrounds(t)
	for text, want := range map[string]workspace.NotTextError{
		"a\nb\x00":                                   {Kind: "binary", Line: 2},
		"\xff\xfea\x00":                              {Kind: "UTF-16", Line: 1},
		"\xfe\xff\x00a":                              {Kind: "UTF-16", Line: 1},
		"\xff\xfe\x00\x00a\x00\x00\x00":              {Kind: "UTF-32", Line: 1},
		"a\n\n\xe4\n":                                {Kind: "not UTF-8", Line: 3},
		"\xed\xa0\x80":                               {Kind: "not UTF-8", Line: 1},
		"ends in the middle \xc3":                    {Kind: "not UTF-8", Line: 1},
		strings.Repeat("x", 1<<16) + "\n\xc3\n":      {Kind: "not UTF-8", Line: 2},
		strings.Repeat("many\n", 100_000) + "\x00\n": {Kind: "binary", Line: 100_001},
	} {
		write(t, filepath.Join(g.a, "text"), text)
		_, err := g.ws.ReadText(t.Context(), "text", workspace.TextOptions{MaxLines: 1})
		var refused *workspace.NotTextError
		require.ErrorAs(t, err, &refused)
		want.Path = "text"
		require.Equal(t, want, *refused)
	}
}

// A file that does not fit into memory is read only as far as necessary.
func TestReadTextLargeFile(t *testing.T) {
	g := newGrounds(t)
	path := filepath.Join(g.a, "large")
	write(t, path, strings.Repeat("line\n", 1000))
	require.NoError(t, os.Truncate(path, 1<<40)) // a sparse file: NULs from here on

	text, err := g.ws.ReadText(t.Context(), "large",
		workspace.TextOptions{First: 10, MaxLines: 5}.WithMaxSkipped(1<<20))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("line\n", 5), text.Content)
	require.Equal(t, -1, text.Total)
	require.EqualValues(t, 1<<40, text.Size)
	require.Equal(t, 15, text.Next())

	_, err = g.ws.ReadText(t.Context(), "large", workspace.TextOptions{First: 2000})
	var binary *workspace.NotTextError
	require.ErrorAs(t, err, &binary)

	write(t, path, strings.Repeat("line\n", 100_000))
	_, err = g.ws.ReadText(t.Context(), "large",
		workspace.TextOptions{First: 90_000, MaxWhole: 1000}.WithMaxSkipped(1<<17))
	var limit *workspace.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualValues(t, 1<<17, limit.Limit)
}

func TestReadTextCancelled(t *testing.T) {
	g := newGrounds(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(syscall.ECANCELED)
	_, err := g.ws.ReadText(ctx, "f", workspace.TextOptions{})
	require.ErrorIs(t, err, syscall.ECANCELED)
	_, err = g.ws.ReadText(t.Context(), "f", workspace.TextOptions{First: -1})
	require.Error(t, err)
	_, err = g.ws.ReadText(t.Context(), "d", workspace.TextOptions{})
	require.ErrorIs(t, err, syscall.EISDIR)
}

// Read in pages, a text has the lines of strings.SplitAfter.
func TestReadTextPages(t *testing.T) {
	g := newGrounds(t)
	rapid.Check(t, func(rt *rapid.T) {
		file := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ä", "\n", "\r\n",
			"bcd", "𝄞", strings.Repeat("é", 35_000)}), 0, 12).Draw(rt, "file"), "")
		require.NoError(rt, os.WriteFile(filepath.Join(g.a, "text"), []byte(file), 0o644))
		o := workspace.TextOptions{
			MaxLines: rapid.IntRange(1, 5).Draw(rt, "lines"), MaxBytes: rapid.IntRange(
				4+len(file)/10, 100_000).Draw(rt, "bytes"),
			MaxWhole: int64(rapid.SampledFrom([]int{1, 1 << 20}).Draw(rt, "whole")),
		}
		lines := strings.SplitAfter(file, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		read := ""
		for o.First = 1; o.First != 0; {
			got, err := g.ws.ReadText(t.Context(), "text", o)
			require.NoError(rt, err)
			require.LessOrEqual(rt, len(got.Content), o.MaxBytes)
			require.LessOrEqual(rt, got.Lines, o.MaxLines)
			require.Equal(rt, o.First, got.First)
			read += got.Content
			if got.Total >= 0 {
				require.Equal(rt, len(lines), got.Total)
			}
			if o.Skip = got.Rest(); o.Skip == 0 {
				require.Equal(rt, strings.Join(lines[:got.First+got.Lines-1], ""), read)
				o.First = got.Next()
			}
		}
		require.Equal(rt, file, read)
	})
}
