package proxy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// newScripted returns a proxy whose agent answers initialize and then follows a script.
func newScripted(t *testing.T, script string, p profiles.Profile) *proxy {
	t.Helper()
	const initialize = "await initialize\nanswer initialize {\"protocolVersion\":1}\n"
	env := proctest.Env("scripted", "ACP_PROXY_TEST_SCRIPT="+initialize+script,
		proctest.NewRecord(t).Env())
	x := newProxy(Command{Path: proctest.Executable(), Name: "scripted", Env: env},
		Options{Profile: p, limits: limits{Backoff: time.Millisecond, ProcessGrace: volume.Patience}})
	t.Cleanup(func() { require.NoError(t, x.Close(context.Background())) })
	return x
}

// A child that cannot be started leaves nothing behind.
func TestFailedStart(t *testing.T) {
	p := newScripted(t, "", profiles.Profile{})
	p.command.Path = "/does/not/exist"
	_, err := p.childAt(t.Context(), childPlace{apart: 1})
	require.Error(t, err)
	require.Empty(t, p.children.list())
}

// A place has one child, also if the one before ends while this one is started.
func TestOneChildInAPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "end")
	p := newScripted(t, "until "+file+"\n", profiles.Profile{})
	at := childPlace{apart: 1}
	before, err := p.childAt(t.Context(), at)
	require.NoError(t, err)
	before.stop(nil)
	p.admit = func(context.Context) (func(), error) {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		<-before.done
		return func() {}, nil
	}
	c, err := p.childAt(t.Context(), at)
	require.NoError(t, err)
	again, err := p.childAt(t.Context(), at)
	require.NoError(t, err)
	require.True(t, c == again)
	require.Len(t, p.children.list(), 1)
}

// A session gets a child even if all that there are have sessions with which it would share servers.
//
// Clause A24.
func TestEveryChildHasConflicts(t *testing.T) {
	p := newScripted(t, "", profiles.Profile{Roots: profiles.Roots{SharesServers: true}})
	roots, err := workspace.NewRoots(t.TempDir(), []string{t.TempDir()})
	require.NoError(t, err)
	a := &activation{proxy: p, roots: roots}
	b := &bridge{activation: a, servers: &servers{relays: &relays{}}}
	for _, at := range []childPlace{{}, {apart: 1}, {apart: 2}} {
		c, err := p.childAt(t.Context(), at)
		require.NoError(t, err)
		for _, theirs := range []*servers{b.servers, {relays: &relays{}}} {
			c.uses.byBridge = append(c.uses.byBridge, &childUse{child: c, shares: true, alone: true,
				bridge: &bridge{activation: a, servers: theirs}})
		}
	}
	u, _, err := p.childFor(t.Context(), b, nil, backend.New, state{})
	require.NoError(t, err)
	require.Equal(t, []*childUse{u}, u.child.uses.byBridge)
	require.Len(t, p.children.list(), 4)
}

// The adapter may answer a cancelled turn before this package gives the child up: the next turn
// gets what the child says from then on.
//
// Clause W6.
func TestUpdatesAfterCancelledTurn(t *testing.T) {
	cs := &childSession{}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := &prompt{ctx: ctx}, &prompt{ctx: t.Context()}
	cs.addPromptLocked(first)
	cancel()
	require.Same(t, first, cs.runningPromptLocked(), "the child has not answered it")
	cs.addPromptLocked(second)
	require.Same(t, second, cs.runningPromptLocked())
}
