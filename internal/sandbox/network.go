package sandbox

import "os"

// Network is how a list of hosts is enforced.
type Network string

const (
	// Namespace gives the process its own network, which has only this process's own loopback
	// and the proxy. Nothing else can be reached, whatever the protocol.
	Namespace Network = "namespace"
	// Ports lets it connect to the TCP port of the proxy, on any machine.
	Ports Network = "ports"
)

// Outlet is the only way into the network of a process with a list of hosts.
type Outlet struct {
	// Level is Namespace or Ports.
	Level Network
	// Ports are the TCP ports to which the process may connect, at level Ports on any machine. At
	// level Namespace others listen for it at these ports of its loopback interface.
	Ports []uint16
	// Entered says that our own thread is in the process's namespace already.
	Entered bool
	// Listening receives the sockets that listen at Ports at level Namespace, of IPv4 and IPv6,
	// before the process starts.
	Listening func([]*os.File) error `json:"-"`
}
