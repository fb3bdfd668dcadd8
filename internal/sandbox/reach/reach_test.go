package reach_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox/reach"
)

// Clause M4.
func TestReachOfAddressesThatStandForOthers(t *testing.T) {
	for address, want := range map[string]reach.Reach{
		"0.0.0.0": reach.Loopback, "0.1.2.3": reach.Loopback, "255.255.255.255": reach.Private, "240.0.0.1": reach.Private,
		"100.127.255.255": reach.Private, "100.128.0.1": reach.Public, "198.18.0.1": reach.Private,
		"192.0.0.9": reach.Private, "169.254.169.254": reach.Private, "168.63.129.16": reach.Private, "8.8.8.8": reach.Public,

		"::ffff:10.0.0.1": reach.Private, "::ffff:8.8.8.8": reach.Public, "::ffff:0.0.0.1": reach.Loopback,
		"::127.0.0.1": reach.Loopback, "::10.0.0.1": reach.Private, "::": reach.Loopback, "::1": reach.Loopback,
		"::ffff:0:10.0.0.1": reach.Private, "::ffff:0:8.8.8.8": reach.Public,
		"fec0::1": reach.Private, "feff::1": reach.Private, "fe80::1": reach.Private, "fd00::1": reach.Private,
		"ff02::1": reach.Private, "2606:4700::1111": reach.Public,

		"64:ff9b::10.0.0.1": reach.Private, "64:ff9b::127.0.0.1": reach.Loopback, "64:ff9b::8.8.8.8": reach.Public,
		"64:ff9b::169.254.169.254": reach.Private, "64:ff9b::6440:1": reach.Private, // 100.64.0.1
		"64:ff9b:1::8.8.8.8": reach.Private, "64:ff9b:1:a::127.0.0.1": reach.Loopback,

		"2002:a00:1::1": reach.Private, "2002:7f00:1::": reach.Loopback, "2002:808:808::1": reach.Public,
		"2002:c0a8:101:ff::1": reach.Private,

		// Teredo: the server, flags and port, and the client with all bits inverted.
		"2001:0:808:808:0:0:f5ff:fffe": reach.Private, "2001:0:a00:1::f7f7:f7f7": reach.Private,
		"2001:0:808:808:0:0:f7f7:f7f7": reach.Public, "2001:0:808:808:0:0:80ff:fffe": reach.Loopback,
		"2001:db8::5efe:10.0.0.1": reach.Private, "2001:db8::200:5efe:127.0.0.1": reach.Loopback,
		"2001:db8::5efe:8.8.8.8": reach.Public,
	} {
		require.Equal(t, want, reach.Of(netip.MustParseAddr(address)), address)
		u, err := url.Parse("https://" + netip.AddrPortFrom(netip.MustParseAddr(address), 443).String())
		require.NoError(t, err)
		require.Equal(t, want, reach.OfHost(u.Hostname()), address)
	}
}

func TestReachOfAddressWithZone(t *testing.T) {
	require.Equal(t, reach.Private, reach.Of(netip.MustParseAddr("64:ff9b::10.0.0.1%eth0")))
	require.Equal(t, reach.Private, reach.Of(netip.MustParseAddr("fec0::1%eth0")))
}
