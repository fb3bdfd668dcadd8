package hosts

import (
	"context"
	"net"
	"net/netip"
)

// MaxConnections is the limit of connections.
const MaxConnections = maxConnections

// WithNetwork replaces DNS and TCP.
func (o Options) WithNetwork(
	lookup func(context.Context, string) ([]netip.Addr, error),
	dial func(context.Context, string) (net.Conn, error),
) Options {
	o.lookup, o.dial = lookup, dial
	return o
}
