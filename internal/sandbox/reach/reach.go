// Package reach tells addresses of this machine and of private networks from those that everybody
// can reach, also if they are embedded in another address.
package reach

import (
	"net/netip"
	"slices"
	"strings"
)

// Reach is the network from which an address can be reached.
type Reach int

const (
	Public   Reach = iota // from everywhere
	Private               // from a private network
	Loopback              // from this machine
)

// Of returns the reach of an address. For an address of a gateway or tunnel, in which another
// address is embedded, it returns the reach of the embedded one.
func Of(ip netip.Addr) Reach {
	ip = ip.Unmap().WithZone("") // no prefix contains an address with a zone
	if !ip.IsValid() || ip.IsLoopback() || ip.IsUnspecified() || inPrefix(ip, "0.0.0.0/8") {
		return Loopback
	}
	at := Public
	if ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		inPrefix(ip, "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4") ||
		inPrefix(ip, "168.63.129.16/32") || // of Azure, for its virtual machines only
		inPrefix(ip, "fec0::/10", "64:ff9b:1::/48") { // site-local, and NAT64 of a network
		at = Private
	}
	for _, inner := range embedded(ip) {
		at = max(at, Of(inner))
	}
	return at
}

// inPrefix reports whether an address has one of the prefixes.
func inPrefix(ip netip.Addr, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return netip.MustParsePrefix(prefix).Contains(ip)
	})
}

// embedded returns the IPv4 addresses in an IPv6 address of a gateway or tunnel: IPv4-compatible
// and translated ones, NAT64, 6to4, Teredo and ISATAP.
func embedded(ip netip.Addr) []netip.Addr {
	b := ip.As16()
	first, last := netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte(b[12:16]))
	switch {
	case inPrefix(ip, "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"):
		return []netip.Addr{last}
	case inPrefix(ip, "2002::/16"):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case inPrefix(ip, "2001::/32"):
		return []netip.Addr{first, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return []netip.Addr{last}
	}
	return nil
}

// OfHost returns the reach of a host in a URL. It does not resolve names.
func OfHost(host string) Reach {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return Of(ip)
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return Loopback
	default:
		return Public
	}
}
