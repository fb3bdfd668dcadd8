package interop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
)

// A line of the default limit is read, and found to be no JSON; one more byte is too many.
func TestW3_TheDefaultLimitOfALineIs64MiB(t *testing.T) {
	const limit = 64 << 20
	a := start(t)
	for extra, want := range []int{-32700, invalidRequest} {
		from := a.Count()
		a.send(strings.Repeat("x", limit+extra))
		m, _ := a.await(from, func(m pipes.Message) bool { return string(m.ID) == "null" })
		require.Equal(t, want, m.Error.Code, m.Error.Message)
		require.Equal(t, extra == 1, strings.Contains(m.Error.Message, "67108864"), m.Error.Message)
	}
	a.initialize()
}
