package proxy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/relays"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/workspace"
)

// newScripted returns a proxy whose agent answers initialize.
func newScripted(t *testing.T, of profiles.Profile) *proxy {
	t.Helper()
	const script = "await initialize\nanswer initialize {\"protocolVersion\":1}\n"
	command, _ := scripted.Command(t, script)
	p := newProxy(command, Options{Profile: of}, unlimited)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

// A session gets a child even if all that there are have sessions with which it would share servers.
//
// Clause A24.
func TestEveryChildHasConflicts(t *testing.T) {
	p := newScripted(t, profiles.Profile{Roots: profiles.Roots{SharesServers: true}})
	roots, err := workspace.NewRoots(t.TempDir(), []string{t.TempDir()})
	require.NoError(t, err)
	s := &setup{proxy: p, roots: roots, relays: relays.New(nil, nil)}
	b := &bridge{setup: s}
	for _, at := range []child.Place{{}, {Apart: 1}, {Apart: 2}} {
		c, err := p.program.At(t.Context(), at)
		require.NoError(t, err)
		p.uses = append(p.uses,
			&childUse{child: c, shares: true, alone: true, bridge: &bridge{setup: s}})
	}
	u, err := b.useChild(t.Context(), b, backend.New, state{})
	require.NoError(t, err)
	require.Equal(t, child.Place{Apart: 3}, u.child.Place)
}
