package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{
		"plain é": 7, "e\u0301": 1, "日本語 ｱ ａ 한": 14, "✅❌⭐☕🧪": 10, "❤\ufe0f⚠": 3, "🇩🇪": 2, "…─✓": 3,
	} {
		require.Equal(t, want, Columns(s), s)
	}
	require.Equal(t, "✅✅…", Cut(strings.Repeat("✅", 5), 6))
	require.Equal(t, "✅✅✅", Cut("✅✅✅", 6))
	require.Equal(t, len("✅✅"), prefixColumns("✅✅✅", 5))
}
