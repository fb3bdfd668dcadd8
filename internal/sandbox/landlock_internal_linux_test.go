package sandbox

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Versions of Landlock that most kernels do not have deny more to a process with a list of hosts,
// and nothing more to others.
//
// Clause X7.
func TestRightsOfNewVersions(t *testing.T) {
	const newest = withUDP + 1
	for _, p := range []Policy{{Mode: Write}, {Mode: Strict}, {Mode: Write, Ports: hosts.Ports{Limited: true, List: []uint16{443}}}} {
		before, err := p.landlockAttributes(withScopes)
		require.NoError(t, err)
		now, err := p.landlockAttributes(newest)
		require.NoError(t, err)
		require.Equal(t, before, now)
	}
	p := Policy{Mode: Write, Hosts: hosts.Hosts{Limited: true}, Outlet: &Outlet{Level: ProxyPort, Ports: []uint16{3128}}}
	for version, want := range map[int][2]bool{withPorts: {}, withSockets - 1: {}, withSockets: {true, false},
		withUDP: {true, true}} {
		a, err := p.landlockAttributes(version)
		require.NoError(t, err)
		require.Equal(t, want[0], a.Handled_access_fs&unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX != 0, version)
		require.Equal(t, want[1], a.Handled_access_net&unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP != 0, version)
		require.NotZero(t, a.Handled_access_net&unix.LANDLOCK_ACCESS_NET_CONNECT_TCP)
	}
	_, err := p.landlockAttributes(withPorts - 1)
	require.ErrorIs(t, err, ErrUnavailable)
	p.Outlet.Level = OwnNetwork
	a, err := p.landlockAttributes(withTruncate)
	require.NoError(t, err, "a namespace needs no ports")
	require.Zero(t, a.Handled_access_net)
}

// With version 9 of Landlock a process with a list of hosts reaches only sockets in places that it
// may write.
//
// Clause X7.
func TestUnixSocketsByPath(t *testing.T) {
	version, err := landlockVersion()
	require.NoError(t, err)
	if version < withSockets {
		t.Skipf("needs Landlock %d: this kernel has version %d", withSockets, version)
	}
	in, out := t.TempDir(), t.TempDir()
	p := Policy{Mode: Write, Write: []string{in}, Outlet: &Outlet{Level: ProxyPort}}
	for dir, reached := range map[string]bool{in: true, out: false} {
		address := filepath.Join(dir, "s")
		l, err := net.Listen("unix", address)
		require.NoError(t, err)
		defer l.Close()
		err = p.Run(Launch{}, func(Launch) error {
			c, err := net.Dial("unix", address)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
		require.Equal(t, reached, err == nil, err)
	}
}

// Without a proxy nothing is started that has a list of hosts.
func TestHostsNeedAnOutlet(t *testing.T) {
	for _, mode := range []Mode{Off, Write, Strict} {
		err := Policy{Mode: mode, Hosts: hosts.Hosts{Limited: true}}.Run(Launch{}, func(Launch) error {
			t.Error("started")
			return nil
		})
		require.ErrorIs(t, err, ErrSetup)
	}
}
