package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The corners of a QR code are squares, which scanners look for.
func TestQR(t *testing.T) {
	picture, err := QR("https://agent.example.org/#pair=ana.ABC")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
	require.Equal(t, len([]rune(lines[0])), (len(lines)*2+1)/2*2-1)
	require.Contains(t, lines[1], "██ ▄▄▄▄▄ █")
	require.Contains(t, lines[1], "█ ▄▄▄▄▄ ██")
	_, err = QR(strings.Repeat("x", 4000))
	require.Error(t, err)
}
