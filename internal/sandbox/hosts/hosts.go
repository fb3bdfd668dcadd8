// Package hosts lets a process that has no other network reach the hosts of a list.
//
// A [Host] is an entry of the list, and [Target] what a program asks for. [Hosts.Allow] decides
// about a target by its text alone. Nothing is resolved before it has allowed the name, because a
// name that is only resolved carries data to a name server too.
//
// [Proxy] is a proxy for HTTP, with CONNECT for everything else. For an allowed name it checks all
// addresses, and connects to one of those that it has checked, never to the name. So a name server
// cannot lead it elsewhere in between. An address of this machine or of a private network must be
// in the list itself.
//
// The proxy does not look into what it passes on through CONNECT. An allowed host can be used to
// carry data elsewhere; docs/security.md describes this for users.
package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/sandbox/reach"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Host is an entry of a list of hosts: "api.example.com", "*.example.com", "10.0.0.5:5432" or
// "[::1]:8080". Without a port it stands for ports 443 and 80. "*." stands for all names below the
// rest, and not for the rest itself.
type Host struct {
	target Target // its port is 0 for 443 and 80
	wild   bool   // names below the target's
}

// ParseHost parses an entry.
func ParseHost(text string) (Host, error) {
	rest, wild := strings.CutPrefix(text, "*.")
	t, err := parseTarget(rest, 0)
	switch {
	case strings.ContainsRune(rest, '*'):
		err = errors.New("* can only stand for the labels before the first dot, as in " +
			"*.example.com")
	case strings.Contains(text, "://") || strings.ContainsRune(text, '/'):
		err = errors.New("use a host without a scheme or path, as in example.com or " +
			"example.com:8080")
	case err == nil && wild && (t.addr.IsValid() || !strings.ContainsRune(t.name, '.')):
		err = errors.New("*. must be followed by a domain such as example.com")
	}
	if err != nil {
		return Host{}, fmt.Errorf("%q is not a host: %w", text, err)
	}
	return Host{t, wild}, nil
}

// String returns h as [ParseHost] reads it.
func (h Host) String() string {
	text := h.target.host()
	if h.target.port != 0 {
		text = h.target.String()
	}
	if h.wild {
		text = "*." + text
	}
	return text
}

// MarshalText implements [encoding.TextMarshaler].
func (h Host) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Host) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHost(string(text))
	return err
}

// Hosts are the hosts that a program may reach: all of them, which is the zero Hosts, or only those
// of a list, which may be empty. A list that is nil means the same as one that is empty.
type Hosts struct {
	Limited bool
	List    []Host // if Limited
}

// Ports are the TCP ports that a program may reach, as [Hosts] are the hosts.
type Ports struct {
	Limited bool
	List    []uint16
}

// Allow reports whether a port may be reached.
func (p Ports) Allow(port uint16) bool { return !p.Limited || slices.Contains(p.List, port) }

// Of returns those of ports that may be reached.
func (p Ports) Of(ports []uint16) []uint16 {
	return slices.DeleteFunc(slices.Clone(ports), func(port uint16) bool { return !p.Allow(port) })
}

// And returns the ports that both allow.
func (p Ports) And(other Ports) Ports {
	if !p.Limited {
		return other
	}
	return Ports{true, other.Of(p.List)}
}

// And returns the hosts that both allow.
func (hosts Hosts) And(other Hosts) Hosts {
	switch {
	case !hosts.Limited:
		return other
	case !other.Limited:
		return hosts
	}
	both := Hosts{Limited: true}
	for _, h := range slices.Concat(hosts.List, other.List) {
		if hosts.contains(h) && other.contains(h) && !slices.Contains(both.List, h) {
			both.List = append(both.List, h)
		}
	}
	return both
}

// contains reports whether all that h stands for is in the list, as far as a single entry says so.
func (hosts Hosts) contains(h Host) bool {
	return slices.ContainsFunc(hosts.List, func(entry Host) bool {
		usual := entry.target.port == 0 && h.target.isUsual()
		return (usual || entry.target.port == h.target.port) && entry.covers(h)
	})
}

// covers reports whether h stands for all hosts of another entry, whatever their ports.
func (h Host) covers(other Host) bool {
	h.target.port, other.target.port = 0, 0
	return h == other || h.wild && strings.HasSuffix(other.target.name, "."+h.target.name)
}

// ParseHosts parses a list in which hosts are separated by commas.
func ParseHosts(list string) (Hosts, error) {
	hosts := Hosts{Limited: true}
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		h, err := ParseHost(text)
		if err != nil {
			return Hosts{}, err
		}
		hosts.List = append(hosts.List, h)
	}
	return hosts, nil
}

// String returns the hosts for a person.
func (hosts Hosts) String() string {
	return text.JoinFunc(hosts.List, ", ", Host.String)
}

// Lists reports whether t is in the list. The addresses of an allowed name must be checked by
// allowAddr.
func (hosts Hosts) Lists(t Target) bool {
	return hosts.contains(Host{target: t})
}

// LocalPorts returns the ports of localhost that are in the list.
func (hosts Hosts) LocalPorts() (ports []uint16) {
	for _, h := range hosts.List {
		t := h.target
		here := t.name == localhost || slices.Contains(localAddrs(), t.addr)
		if here && !h.wild && t.port != 0 && !slices.Contains(ports, t.port) {
			ports = append(ports, t.port)
		}
	}
	return ports
}

// allowAddr reports whether addr, to which the allowed target t was resolved, may be connected to.
func (hosts Hosts) allowAddr(t Target, addr netip.Addr) bool {
	addr = addr.Unmap()
	switch at := reach.Of(addr); {
	case at == reach.Public:
		return true
	case at == reach.Loopback && t.name == localhost && addr.IsLoopback():
		return true
	}
	return hosts.Lists(Target{addr: addr, port: t.port})
}

// localhost is the one name that may lead to this machine.
const localhost = "localhost"

// localAddrs returns the addresses of localhost.
func localAddrs() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// Target is a host and a port that a program wants to connect to.
type Target struct {
	name string     // lower-case labels without a trailing dot, or "" for an address
	addr netip.Addr // without zone, and never an IPv4 address in an IPv6 one
	port uint16
}

// isUsual reports whether the port is one for which an entry need not name it.
func (t Target) isUsual() bool { return t.port == 443 || t.port == 80 }

// ParseTarget parses the host and port of a request, strictly: a name or address that some parser
// could read as another one is refused. implied is the port of a request without one; with 0 such a
// request is refused.
func ParseTarget(text string, implied uint16) (Target, error) {
	t, err := parseTarget(text, implied)
	if err == nil && t.port == 0 {
		err = errors.New("the port is missing")
	}
	return t, err
}

func parseTarget(text string, implied uint16) (Target, error) {
	host, port, err := splitPort(text, implied)
	if err != nil {
		return Target{}, err
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") || !addr.Is6() || addr.Zone() != "" {
			return Target{}, errors.New("the address in brackets is not valid")
		}
		return Target{addr: addr.Unmap(), port: port}, nil
	}
	if err := checkName(strings.TrimSuffix(host, ".")); err != nil {
		return Target{}, err
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !isNumber(host[strings.LastIndexByte(host, '.')+1:]) {
		return Target{name: host, port: port}, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return Target{}, errors.New("the address is not valid")
	}
	return Target{addr: addr, port: port}, nil
}

// splitPort separates a port at the end of text from the rest.
func splitPort(text string, implied uint16) (host string, port uint16, err error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 || at < strings.LastIndexByte(text, ']') {
		return text, implied, nil
	}
	host, digits := text[:at], text[at+1:]
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
		return "", 0, errors.New("the port is not valid")
	}
	return host, uint16(n), nil
}

// checkName checks the form of a name. Names in other alphabets have the form xn--.
func checkName(name string) error {
	const maxName, maxLabel = 253, 63
	if name == "" || len(name) > maxName {
		return errors.New("the name is empty or too long")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return errors.New("a part of the name is empty or too long")
		}
		if strings.Trim(label, nameBytes) != "" {
			return errors.New("a name may contain only letters of ASCII, digits, dots, - and _; " +
				"names in other alphabets are written with xn--")
		}
	}
	return nil
}

// nameBytes are the bytes of which a part of a name may consist.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// isNumber reports whether a program could take a name that ends with label for an IPv4 address, as
// browsers decide it.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return strings.Trim(digits, "0123456789") == "" ||
		hex && strings.Trim(digits, "0123456789abcdef") == ""
}

// host returns the host of t as it is written in a URL.
func (t Target) host() string {
	switch {
	case t.addr.Is6():
		return "[" + t.addr.String() + "]"
	case t.addr.IsValid():
		return t.addr.String()
	}
	return t.name
}

// String returns the host and port of t.
func (t Target) String() string { return t.host() + ":" + strconv.Itoa(int(t.port)) }

// Entry returns the entry of a list that allows t and no other target, in its shortest form.
func (t Target) Entry() string {
	if t.isUsual() {
		return t.host()
	}
	return t.String()
}
