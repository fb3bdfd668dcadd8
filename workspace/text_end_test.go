package workspace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// The last lines are those that reading all of the file gives.
func TestReadTextEnd(t *testing.T) {
	g := newGrounds(t)
	line := rapid.SampledFrom([]string{"\n", "a\n", "é\n", "two words\r\n",
		strings.Repeat("é", 40_000) + "\n"})
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 12).Draw(rt, "lines")
		content := strings.Join(lines, "") + rapid.SampledFrom([]string{"", "end"}).Draw(rt, "end")
		write(t, filepath.Join(g.a, "text"), content)
		all := strings.SplitAfter(content, "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		o := workspace.TextOptions{MaxLines: n, MaxBytes: 1 << 20,
			MaxWhole: rapid.SampledFrom([]int64{1, 1 << 20}).Draw(rt, "whole")}
		got, err := readTextEnd(t, g.ws, "text", o)
		require.NoError(rt, err)
		want := all[max(0, len(all)-n):]
		require.Equal(rt, strings.Join(want, ""), got.Content)
		require.Equal(rt, len(want), got.Lines)
		require.Equal(rt, workspace.NotCut, got.Cut)
		if int64(len(content)) <= o.MaxWhole {
			require.Equal(rt, []int{len(all), len(all) - len(want) + 1}, []int{got.Total, got.First})
		} else {
			require.Equal(rt, []int{-1, -1}, []int{got.Total, got.First})
		}

		o.MaxBytes = rapid.IntRange(1, 100).Draw(rt, "bytes")
		got, err = readTextEnd(t, g.ws, "text", o)
		require.NoError(rt, err)
		require.LessOrEqual(rt, len(got.Content), o.MaxBytes)
		require.True(rt, strings.HasSuffix(content, got.Content))
		require.Equal(rt, len(strings.Join(want, "")) > o.MaxBytes, got.Cut != workspace.NotCut)
	})
}

func TestReadTextEndIsText(t *testing.T) {
	g := newGrounds(t)
	for name, content := range map[string]string{
		"nul": "a\n\x00\n", "latin": "a\n\xe9\n", "utf16": "\xff\xfea\x00",
		"continued": "a\n" + strings.Repeat("\x80", 100),
	} {
		write(t, filepath.Join(g.a, name), content)
		for _, whole := range []int64{1, 1 << 20} {
			o := workspace.TextOptions{MaxLines: 1, MaxBytes: 10, MaxWhole: whole}
			_, err := readTextEnd(t, g.ws, name, o)
			var no *workspace.NotTextError
			require.ErrorAs(t, err, &no, name)
			require.NotContains(t, err.Error(), "line 0")
		}
	}
	write(t, filepath.Join(g.a, "bom"), "\ufeffa\nb\n")
	got, err := readTextEnd(t, g.ws, "bom", workspace.TextOptions{MaxLines: 2})
	require.NoError(t, err)
	require.True(t, got.BOM)
	require.Equal(t, "a\nb\n", got.Content)
}

func readTextEnd(
	t *testing.T, ws *workspace.Workspace, path string, o workspace.TextOptions,
) (workspace.Text, error) {
	t.Helper()
	f, err := ws.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	return workspace.ReadTextEndFrom(t.Context(), f, info.Size(), path, o)
}
