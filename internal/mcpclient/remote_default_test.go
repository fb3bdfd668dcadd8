package mcpclient_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

func TestM2_RemotesOfBothKindsAreToldByTheirAddressOrThePolicy(t *testing.T) {
	for _, kind := range []mcpclient.Transport{mcpclient.HTTP, mcpclient.SSE} {
		for address, byDefault := range map[string]bool{"http://127.0.0.1:1/": true, "https://example.com/": false} {
			for policy, expected := range map[mcpclient.Switch]bool{
				mcpclient.Default: byDefault, mcpclient.On: true, mcpclient.Off: false,
			} {
				f := with(t, mcpclient.Options{})
				c := mcpclient.Config{Name: "s", Transport: kind, URL: address, Policy: mcpclient.Policy{Roots: policy}}
				f.change(open(t, folder(t)), c)
				require.Equal(t, expected, f.Servers()[0].RootsDeclared, "%s %s %v", kind, address, policy)
			}
		}
	}
}
