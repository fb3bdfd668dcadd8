package acp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The title of a notice is never empty, and can stand alone.
//
// Clause A37.
func TestNewNotice(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for said, want := range map[string]string{
		"Gone.":            `"title":"Gone."`,
		"Gone. Go on.":     `"title":"Gone.","description":"Go on."`,
		"Gone\nGo on. Ok.": `"title":"Gone","description":"Go on. Ok."`,
		long:               `"description":"` + long + `"`,
	} {
		raw := newNotice(said).String()
		require.Contains(t, raw, want)
		require.NotContains(t, raw, `"title":""`)
		require.Equal(t, strings.Contains(want, "description"),
			strings.Contains(raw, "description"), raw)
	}
}
