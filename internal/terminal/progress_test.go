package terminal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// The line has what is done now, however short the last thing took, and nothing at the end.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{out: &out, width: 12}
	p.Show("reading")
	p.Show("asking %s", "the agent")
	p.End()
	require.Equal(t, eraseLine+"reading"+eraseLine+"asking the…"+eraseLine, out.String())
	out.Reset()
	(&Progress{out: &out}).Show("nothing")
	require.Empty(t, out.String())
}
