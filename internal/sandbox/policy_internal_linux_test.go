package sandbox

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// anyList returns a list that is nil, empty or not empty.
func anyList[T any](t *rapid.T, name string, values ...T) []T {
	switch rapid.IntRange(0, 2).Draw(t, name) {
	case 0:
		return nil
	case 1:
		return []T{}
	}
	return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, name)
}

// A policy that goes through JSON to another process permits there what it permits here.
//
// Clause X8.
func TestPoliciesGoThroughJSON(t *testing.T) {
	one, err := hosts.ParseHosts("a.com,*.b.org:8443")
	require.NoError(t, err)
	target, err := hosts.ParseTarget("a.com:443", 0)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Mode:   rapid.SampledFrom([]Mode{Off, Write, Strict}).Draw(t, "mode"),
			Write:  anyList(t, "write", "/a", "/b"),
			Read:   anyList(t, "read", "/c"),
			Helper: anyList(t, "helper", "h"),
		}
		p.Hosts.Limited = rapid.Bool().Draw(t, "limited hosts")
		p.Ports.Limited = rapid.Bool().Draw(t, "limited ports")
		if p.Hosts.Limited {
			p.Hosts.List = anyList(t, "hosts", one.List...)
		}
		if p.Ports.Limited {
			p.Ports.List = anyList[uint16](t, "ports", 443, 80)
		}
		if rapid.Bool().Draw(t, "outlet") {
			level := rapid.SampledFrom([]Network{OwnNetwork, ProxyPort}).Draw(t, "level")
			p.Outlet = &Outlet{Level: level, Ports: anyList[uint16](t, "outlet's ports", 1, 2)}
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		var got Policy
		require.NoError(t, json.Unmarshal(text, &got))

		require.Equal(t, p.Hosts.Limited, got.Hosts.Limited)
		require.Equal(t, p.Hosts.String(), got.Hosts.String())
		require.Equal(t, p.Hosts.Lists(target), got.Hosts.Lists(target))
		require.Equal(t, p.connectsTo().Limited, got.connectsTo().Limited)
		require.Equal(t, p.connectsTo().Allow(443), got.connectsTo().Allow(443))
		require.Equal(t, p.Writes("/a/x"), got.Writes("/a/x"))
		require.Equal(t, text, encoded(t, got))
	})
}

func encoded(t *rapid.T, p Policy) []byte {
	text, err := json.Marshal(p)
	require.NoError(t, err)
	return text
}
