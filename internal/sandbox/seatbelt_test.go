package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// The profile has not been tried on macOS by a test; this is its text.
func TestSeatbelt(t *testing.T) {
	p := Policy{Mode: Write, Write: []string{"/Users/a/src", `/private/tmp/a "b"\c`},
		Read: []string{"/never"}, Hidden: []string{"/Users/a/src/own"},
		Ports: hosts.Ports{Limited: true, List: []uint16{443}}}
	want, err := os.ReadFile("testdata/profile.sb")
	require.NoError(t, err)
	require.Equal(t, string(want), p.seatbeltProfile())

	p.Ports, p.Outlet = hosts.Ports{}, &Outlet{Level: ProxyPort, Ports: []uint16{3128}}
	require.Contains(t, p.seatbeltProfile(), `
(deny network-outbound)
(allow network-outbound
  (remote tcp "localhost:3128"))
(allow network-outbound
  (remote unix-socket (subpath "/Users/a/src")))
`)

	strict := Policy{Mode: Strict, Write: []string{"/Users/a/src"}, Read: []string{"/opt/node"}}.seatbeltProfile()
	reads := strings.Index(strict, "(deny file-read*)")
	require.Positive(t, reads)
	for _, allowed := range []string{`(subpath "/Users/a/src")`, `(subpath "/opt/node")`,
		`(subpath "/usr")`, "(allow file-read-metadata)"} {
		require.Contains(t, strict[reads:strings.Index(strict, "(deny file-write*)")], allowed)
	}
	require.NotContains(t, strict, "network")
}
