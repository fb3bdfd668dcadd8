package text_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text"
)

// The number of combinations of several braces is the product of their alternatives.
func TestGlobChoices(t *testing.T) {
	for glob, n := range map[string]int{
		"a": 1, "{a}": 1, "{a,b}": 2, "{a,b}{c,d,e}": 6, "{a,{b,c},d{e,f}g}": 12, "{,a}": 2, "a,b": 1,
		`\{a,b}`: 1, `{a\,b,c}`: 2, "[{,}]{a,b}": 2, "{[,}],b}": 2, "{[]],b}": 2, `{[\],],b}`: 2, "}a,b": 1,
		"{[}a],b,c}": 3, `{[\]}],b}`: 2, `{\},b}`: 2, `\{a,b\}`: 1,
		strings.Repeat("{"+strings.Repeat("a,", 50)+"b}", 8): 51 * 51,
	} {
		require.Equal(t, n, text.GlobChoices(glob, 256), glob)
	}
}
