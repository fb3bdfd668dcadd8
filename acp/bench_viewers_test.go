package acp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// What an update costs with one viewer, and with ten: each is sent every update, which is encoded
// once.
func BenchmarkViewers(b *testing.B) {
	for _, viewers := range []int{1, 2, 10} {
		b.Run(fmt.Sprint(viewers), func(b *testing.B) {
			dir := b.TempDir()
			s := newServer(b, acp.ServerOptions{}, allowing(b, dir, acp.Options{}))
			connect := func() *client {
				c := connectTo(b, s, acp.Peer{Principal: "ann", Remote: true})
				c.initialize()
				return c
			}
			first := connect()
			id := first.open(dir)
			for range viewers - 1 {
				connect().call("session/load", rootsParams(id, dir))
			}
			b.ReportAllocs()
			b.ResetTimer()
			prompt, line := first.request("session/prompt", promptParams(id, fmt.Sprintf("count %d", b.N)))
			first.send(line)
			require.Equal(b, "end_turn", first.response(prompt).stopReason(b))
		})
	}
}
