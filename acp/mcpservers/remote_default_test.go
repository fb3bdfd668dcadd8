package mcpservers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/mcpservers"
)

func TestM2_RemotesOfBothKindsAreToldByTheirAddressOrThePolicy(t *testing.T) {
	for _, kind := range []mcpservers.Transport{mcpservers.HTTP, mcpservers.SSE} {
		for address, byDefault := range map[string]bool{"http://127.0.0.1:1/": true, "https://example.com/": false} {
			for policy, expected := range map[mcpservers.Switch]bool{
				mcpservers.Default: byDefault, mcpservers.On: true, mcpservers.Off: false,
			} {
				f := with(t, mcpservers.Options{})
				c := mcpservers.Config{Name: "s", Transport: kind, URL: address, Policy: mcpservers.Policy{Roots: policy}}
				f.change(open(t, folder(t)), c)
				require.Equal(t, expected, f.Servers()[0].RootsDeclared, "%s %s %v", kind, address, policy)
			}
		}
	}
}
