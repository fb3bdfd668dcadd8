package reach_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox/reach"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// Clause M4.
func TestReachOfAddressesThatStandForOthers(t *testing.T) {
	reaches := map[string]reach.Reach{"public": reach.Public, "private": reach.Private, "loopback": reach.Loopback}
	for want, addresses := range tabletest.Read(t, "addresses.txt") {
		for _, address := range addresses {
			require.Equal(t, reaches[want], reach.Of(netip.MustParseAddr(address)), address)
			u, err := url.Parse("https://" + netip.AddrPortFrom(netip.MustParseAddr(address), 443).String())
			require.NoError(t, err)
			require.Equal(t, reaches[want], reach.OfHost(u.Hostname()), address)
		}
	}
}

func TestReachOfAddressWithZone(t *testing.T) {
	require.Equal(t, reach.Private, reach.Of(netip.MustParseAddr("64:ff9b::10.0.0.1%eth0")))
	require.Equal(t, reach.Private, reach.Of(netip.MustParseAddr("fec0::1%eth0")))
}
