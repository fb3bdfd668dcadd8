package discovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A brace within a set, or behind a backslash, closes nothing.
func TestExpansions(t *testing.T) {
	require.Equal(t, 3, expansions("{[}a],b,c}"))
	require.Equal(t, 2, expansions(`{[\]}],b}`))
	require.Equal(t, 2, expansions(`{\},b}`))
	require.Equal(t, 1, expansions(`\{a,b\}`))
	require.Greater(t, expansions(strings.Repeat("{[}a],a,a}", 8)), maxExpansions)
}
