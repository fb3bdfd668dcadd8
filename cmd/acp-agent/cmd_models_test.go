package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a server offers is printed on one line of limited length.
func TestHostileOffers(t *testing.T) {
	var out bytes.Buffer
	offers := []string{"a", "b\n\nhttp://elsewhere offers c\x1b[2J", strings.Repeat("x", 1<<20)}
	require.NoError(t, printModels(streams{out: &out},
		[]modelReport{{ID: "m", BaseURL: "http://127.0.0.1", Name: "a", Offers: offers}}))
	require.Equal(t, 4, strings.Count(out.String(), "\n"), out.String()[:200])
	require.NotContains(t, out.String(), "\x1b")
	require.Less(t, out.Len(), 2*maxOffers)
}
