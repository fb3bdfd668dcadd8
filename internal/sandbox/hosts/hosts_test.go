package hosts_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	hostproxy "github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

func hosts(t testing.TB, list string) hostproxy.Hosts {
	t.Helper()
	h, err := hostproxy.ParseHosts(list)
	require.NoError(t, err)
	return h
}

const list = "a.com,*.example.com,modules.example.org:8443,10.0.0.5:5432,[fd00::5]:80,localhost:3000," +
	"127.0.0.2,xn--bcher-kva.example"

// Every way in which a name was once taken for another one.
//
// Clause X7.
func TestTargets(t *testing.T) {
	allowed, targets := hosts(t, list), tabletest.Read(t, "targets.txt")
	for _, line := range targets["allowed"] {
		text, want, _ := strings.Cut(line, " ")
		got, err := hostproxy.ParseTarget(text, 0)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String(), text)
		require.True(t, allowed.Lists(got), text)
	}
	for _, text := range targets["not in the list"] {
		got, err := hostproxy.ParseTarget(text, 0)
		require.NoError(t, err, text)
		require.False(t, allowed.Lists(got), text)
	}
	for _, text := range append(targets["no target"], strings.Repeat("a", 64)+".example.com:443",
		strings.Repeat("a.", 130)+"example.com:443") {
		_, err := hostproxy.ParseTarget(text, 0)
		require.Error(t, err, "%q", text)
	}
	trailing, err := hostproxy.ParseTarget("10.0.0.5.:5432", 0)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.5:5432", trailing.String())
	plain, err := hostproxy.ParseTarget("a.com", 80)
	require.NoError(t, err)
	require.Equal(t, "a.com:80", plain.String())
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"api.Anthropic.com": "api.anthropic.com", "*.example.com": "*.example.com", "a.com.": "a.com",
		"*.example.com:8443": "*.example.com:8443", "10.0.0.5:5432": "10.0.0.5:5432", "[::1]:80": "[::1]:80",
		"[::ffff:1.2.3.4]": "1.2.3.4", "localhost:3000": "localhost:3000", "gitlab": "gitlab",
	} {
		h, err := hostproxy.ParseHost(text)
		require.NoError(t, err, text)
		require.Equal(t, want, h.String())
	}
	for text, why := range map[string]string{
		"*": "first dot", "*.com": "domain such as", "a.*.com": "first dot", "**.a.com": "first dot",
		"a*.com": "first dot", "https://a.com": "without a scheme", "a.com/x": "without a scheme",
		"a.com:0": "port", "*.10.0.0.5": "domain such as", "*.localhost": "domain such as", "": "empty",
		"b\u00fccher.example": "xn--", "10.0.0.0/8": "without a scheme", "a b.com": "letters", "::1": "letters",
	} {
		_, err := hostproxy.ParseHost(text)
		require.ErrorContains(t, err, why, text)
	}
	none := hosts(t, "")
	require.True(t, none.Limited)
	require.Empty(t, none.List)
	require.Equal(t, []uint16{3000}, hosts(t, list).LocalPorts())
	require.Equal(t, []uint16{1, 2}, hosts(t, "127.0.0.1:1,[::1]:2,localhost:1,localhost,127.0.0.2:3").LocalPorts())
}

// What the proxy takes for allowed is allowed as everybody else reads it.
//
// Clause X7.
func FuzzTargets(f *testing.F) {
	for _, text := range []string{"a.com:443", "x.example.com.:443", "[::ffff:10.0.0.5]:5432", "localhost:3000",
		"evil.com\x00.example.com:443", "0x7f.1:80", "127.0.0.2", "user@a.com:443"} {
		f.Add(text)
	}
	allowed, err := hostproxy.ParseHosts(list)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		target, err := hostproxy.ParseTarget(text, 80)
		if err != nil {
			return
		}
		again, err := hostproxy.ParseTarget(target.String(), 0)
		require.NoError(t, err)
		require.Equal(t, target, again)
		if !allowed.Lists(target) {
			return
		}
		host := target.String()[:strings.LastIndexByte(target.String(), ':')]
		switch addr, err := netip.ParseAddr(strings.Trim(host, "[]")); {
		case err == nil:
			require.Contains(t, []string{"10.0.0.5", "fd00::5", "127.0.0.2"}, addr.String())
		case strings.HasSuffix(host, ".example.com"):
			require.Empty(t, strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789._-"))
		default:
			require.Contains(t, []string{"a.com", "modules.example.org", "localhost",
				"xn--bcher-kva.example"}, host)
		}
		// The text itself differs only in case, the trailing dot and how an address is written.
		if !strings.HasPrefix(text, "[") {
			require.True(t, strings.HasPrefix(strings.ToLower(text), host), "%q", text)
		}
	})
}

// What two lists allow is what both allow.
//
// Clause X8.
func TestHostsAnd(t *testing.T) {
	none := hostproxy.Hosts{Limited: true}
	for _, c := range [][3]string{
		{"a.com", "a.com", "a.com"}, {"a.com", "b.com", ""}, {"a.com", "", ""}, {"", "a.com", ""},
		{"*.a.com", "x.a.com,a.com", "x.a.com"}, {"x.a.com", "*.a.com", "x.a.com"},
		{"*.a.com", "*.b.a.com", "*.b.a.com"}, {"a.com", "a.com:443", "a.com:443"},
		{"a.com:8080", "a.com", ""}, {"1.2.3.4,a.com", "1.2.3.4", "1.2.3.4"},
	} {
		require.Equal(t, hosts(t, c[2]), hosts(t, c[0]).And(hosts(t, c[1])), c)
	}
	require.Equal(t, none, hostproxy.Hosts{}.And(none))
	require.Equal(t, none, none.And(hostproxy.Hosts{}))
	require.False(t, hostproxy.Hosts{}.And(hostproxy.Hosts{}).Limited)

	ports := func(list ...uint16) hostproxy.Ports { return hostproxy.Ports{Limited: true, List: list} }
	require.Equal(t, []uint16{2}, ports(1, 2).And(ports(2, 3)).List)
	require.True(t, ports(1).And(ports()).Limited)
	require.Empty(t, ports(1).And(ports()).List)
	require.Equal(t, ports(1), ports(1).And(hostproxy.Ports{}))
	require.Equal(t, ports(1), hostproxy.Ports{}.And(ports(1)))
}
