package mcpclient_test

import (
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

// Nobody can tell what a remote remembers, so it is connected anew also if it never asked for the roots.
func TestM3_ARemoteIsConnectedAnewWhetherOrNotItAsked(t *testing.T) {
	a, b := folder(t), folder(t)
	for name, c := range map[string]struct {
		policy mcpclient.OnShrink
		asks   bool
		times  int64
	}{
		"asked":                 {mcpclient.Restart, true, 2},
		"never asked":           {mcpclient.Restart, false, 2},
		"asked, to be notified": {mcpclient.Notify, true, 1},
		"never, to be notified": {mcpclient.Notify, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var initialized atomic.Int64
			handler := mcp.NewStreamableHTTPHandler(sdkServer("2025-11-25", &initialized), nil)
			server := remote("r", mcpclient.HTTP, remoteServer(t, handler).URL+"/mcp")
			server.Policy.OnShrink = c.policy
			f := with(t, mcpclient.Options{})
			f.change(open(t, a, b), server)
			tool := "r.echo"
			if c.asks {
				tool = "r.roots"
			}
			f.call(tool, "{}")
			require.EqualValues(t, 1, initialized.Load())
			f.change(open(t, a), server)
			f.call(tool, "{}")
			require.Equal(t, c.times, initialized.Load())
		})
	}
}
