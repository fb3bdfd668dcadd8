package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// A child with a list of hosts reaches them through a proxy in our process, which lives as long as
// the child. At level ProxyPort the proxy listens on this machine's loopback. At level OwnNetwork
// it listens on the loopback of a network that only the child has: a socket belongs to the network
// in which it was made, and can be used from outside.

// network is the proxy of a child. It is zero for a child without a list of hosts.
type network struct {
	proxy  *hosts.Proxy
	outlet sandbox.Outlet
	env    []string
}

// maxLocals limits the ports of this machine in a list.
const maxLocals = 64

// InEffect describes what restricts a command with the settings s.
func InEffect(s sandbox.Settings) string {
	text := s.Mode.String()
	switch {
	case s.Unprotected() != nil:
		return sandbox.Off.String() + ", because it is not available here"
	case s.Mode == sandbox.Off || !s.Hosts.Limited:
		return text
	}
	names := "no hosts"
	if len(s.Hosts.List) > 0 {
		names = "only the hosts " + s.Hosts.String()
	}
	text += "; " + names + map[sandbox.Network]string{
		sandbox.OwnNetwork: ", in a network of its own",
		sandbox.ProxyPort:  ", but other machines at the port of acp-agent's proxy, too",
	}[networkLevel(s.Helper)]
	example := &http.Request{URL: &url.URL{Scheme: "https", Host: "example.com"}}
	if via, err := upstream(example); len(s.Hosts.List) > 0 && err == nil && via != nil {
		text += ", by way of the proxy " + via.Host + ", which may lead their names anywhere"
	}
	return text
}

// upstream returns the proxy that our own requests go through.
func upstream(r *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(r) }

// openNetwork starts the proxy of a command with a list of hosts. base is the command's
// environment.
func openNetwork(p sandbox.Policy, base []string, refused func(hosts.Refusal)) (*network, error) {
	if !p.Hosts.Limited {
		return &network{}, nil
	}
	// The child may reach these ports of this machine at its own loopback.
	locals := p.Ports.Of(p.Hosts.LocalPorts())
	if len(locals) > maxLocals {
		return nil, fmt.Errorf("sandboxHosts has more than %d ports of this machine", maxLocals)
	}
	o := hosts.Options{Hosts: p.Hosts, Ports: p.Ports, Refused: refused, Upstream: upstream}
	if networkLevel(p.Helper) == sandbox.OwnNetwork {
		return networkInside(o, locals, base), nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.Password = rand.Text() // every program of this machine can reach it
	proxy := hosts.New(o)
	proxy.Serve(l)
	address := "http://" + hosts.User + ":" + o.Password + "@" + l.Addr().String()
	return &network{proxy: proxy, env: proxyVariables(address), outlet: sandbox.Outlet{
		Level: sandbox.ProxyPort, Ports: append([]uint16{portOf(l)}, locals...)}}, nil
}

// networkInside returns the proxy of a child in a namespace, in which it listens later.
func networkInside(o hosts.Options, locals []uint16, base []string) *network {
	port := uint16(3128)
	for slices.Contains(locals, port) {
		port++
	}
	java := fmt.Sprintf("-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=%d "+
		"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%[1]d "+
		"-Dhttp.nonProxyHosts=localhost|127.*|[::1]", port)
	const name = "JAVA_TOOL_OPTIONS" // Java reads no other variable, and cannot send a password
	env := append(proxyVariables(fmt.Sprintf("http://127.0.0.1:%d", port)),
		name+"="+strings.TrimSpace(lookUp(base, name)+" "+java))
	return &network{proxy: hosts.New(o), env: env, outlet: sandbox.Outlet{
		Level: sandbox.OwnNetwork, Ports: append([]uint16{port}, locals...)}}
}

// proxyVariables returns the environment of a child whose proxy has an address. Its own loopback is
// reached without the proxy.
func proxyVariables(address string) (env []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+address, strings.ToLower(name)+"="+address)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+own, "no_proxy="+own, "NODE_USE_ENV_PROXY=1")
}

// serve serves the sockets that listen at the ports of the outlet: the first is that of the proxy.
func (n *network) serve(files []*os.File) error {
	var failed []error
	for _, file := range files {
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if port := portOf(l); port == n.outlet.Ports[0] {
			n.proxy.Serve(l)
		} else {
			n.proxy.Forward(l, port)
		}
	}
	return errors.Join(failed...)
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// launchHere starts cmd from our own process as p says.
func (n *network) launchHere(cmd *exec.Cmd, p sandbox.Policy) error {
	launch := sandbox.Launch{Path: cmd.Path, Args: cmd.Args}
	if n.proxy != nil {
		p.Outlet, launch.Listening = &n.outlet, n.serve
	}
	return p.Run(launch, func(l sandbox.Launch) error {
		cmd.Path, cmd.Args = l.Path, l.Args
		return cmd.Start()
	})
}

// close ends the proxy and its connections.
func (n *network) close() {
	if n != nil && n.proxy != nil {
		n.proxy.Close()
	}
}
