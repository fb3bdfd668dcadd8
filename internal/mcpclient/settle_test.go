package mcpclient_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

func TestM5_ACallBehindAChangeWaitsForTheNewRoots(t *testing.T) {
	f := with(t, mcpclient.Options{SettleMax: patience})
	c := asking("s")
	c.Policy.SettleWithoutRoots = patience // only an answered roots/list makes it ready
	var roots []string
	for range 6 {
		roots = append(roots, folder(t))
		f.change(open(t, roots[0], roots[1:]...), c)
		f.call("s.echo", "{}")
		require.Equal(t, strings.Split(uris(t, roots...), "\n"), f.Servers()[0].Told)
	}
}

// If a server were given its time at each call, these would take far longer than they may.
func TestM5_AServerIsGivenTimeOnce(t *testing.T) {
	f := with(t, mcpclient.Options{})
	c := self("s", "sdk", "REVISION=2025-11-25")
	f.change(open(t, folder(t)), c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 100 {
		_, err := f.Call(ctx, f.host, "s.echo", backend.Raw("{}"))
		require.NoError(t, err)
	}
	require.Nil(t, f.Servers()[0].Told, "it never asked")
}
