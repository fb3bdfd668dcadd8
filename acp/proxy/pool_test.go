package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
)

// newPooled returns a system whose connections have a pool.
func newPooled(t *testing.T, a abilities, l proxy.Limits) *system {
	t.Helper()
	h := newSystem(t, a, proxy.Options{}.With(l))
	h.pool = newPool(t, proxy.PoolLimits{})
	return h
}

func newPool(t *testing.T, l proxy.PoolLimits) *proxy.Pool {
	p := proxy.NewPool(l)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

func TestConnectionsShareProcess(t *testing.T) {
	t.Parallel()
	h := newPooled(t, abilities{Load: true, Close: true}, proxy.Limits{})
	first, second := h.connect(), h.connect()
	setup := client.Setup{Roots: roots(t, 0)}
	a, err := first.NewSession(t.Context(), setup)
	require.NoError(t, err)
	b, err := second.NewSession(t.Context(), setup)
	require.NoError(t, err)
	require.Equal(t, "agent N:one", first.prompt(a.ID, "one"))
	require.Equal(t, "agent N:two", second.prompt(b.ID, "two"))
	require.Empty(t, first.shown())
	first.disconnect()
	require.Equal(t, "agent N:two+three", second.prompt(b.ID, "three"))
	second.disconnect()
	third := h.connect()
	_, err = third.LoadSession(t.Context(), a.ID, setup)
	require.NoError(t, err)
	require.Equal(t, "agent N:one+four", third.prompt(a.ID, "four"))
	require.Equal(t, []string{""}, h.starts())
	h.user = "another"
	h.connect()
	require.Len(t, h.starts(), 2)
	require.NoError(t, h.pool.Close(t.Context()))
}

// An agent that cannot close sessions would keep them all until the last connection ends.
func TestAgentWithoutCloseIsNotShared(t *testing.T) {
	t.Parallel()
	h := newPooled(t, abilities{Load: true}, proxy.Limits{})
	h.connect()
	h.connect()
	require.Len(t, h.starts(), 2)
}

func TestSharedProcessEndsAfterLastConnection(t *testing.T) {
	t.Parallel()
	h := newPooled(t, abilities{Close: true}, proxy.Limits{Linger: time.Nanosecond})
	require.Eventually(t, func() bool {
		h.connect().disconnect()
		return len(h.starts()) > 1
	}, patience, time.Millisecond)
}

// Whatever the clients of a user announce, the user has a limited number of processes. Unused ones
// make room for new ones, those of others only if there is no room for all users.
//
// Clause N6.
func TestProcessesOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	c, record := scripted.Command(t, capable)
	pool := newPool(t, proxy.PoolLimits{PerUser: 3, Total: 5})
	n := 0
	connect := func(user string) (leave func(), err error) {
		n++
		b := pool.New(user, "", c, proxy.Options{})
		leave = func() { require.NoError(t, b.Close(context.Background())) }
		_, err = b.Initialize(t.Context(), backend.Raw(fmt.Sprintf(
			`{"protocolVersion":1,"clientCapabilities":{"_meta":{"n":%d}}}`, n)), newFakeClient(t))
		return leave, err
	}
	refused := func(user, why string) {
		t.Helper()
		leave, err := connect(user)
		require.ErrorContains(t, err, why)
		failed, ok := errors.AsType[*backend.Error](err)
		require.True(t, ok)
		require.JSONEq(t, `{"reason":"too_many_processes"}`, string(failed.Data))
		leave()
	}
	for range 10 {
		leave, err := connect("ana")
		require.NoError(t, err)
		leave() // the process stays for a minute
	}
	require.Len(t, linesOf(t, record, "initialize"), 10)
	require.Equal(t, 3, pool.Running())
	var leaves []func()
	stay := func(user string) {
		t.Helper()
		leave, err := connect(user)
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	for range 3 {
		stay("ana")
	}
	refused("ana", "the limit is 3; close an editor window")
	stay("bob")
	idle, err := connect("bob")
	require.NoError(t, err)
	refused("cid", "of all users: the limit is 5; try again later")
	idle()
	stay("cid") // in place of the unused one of bob
	require.Equal(t, 5, pool.Running())
	leaves[0]()
	stay("ana")
	for _, leave := range leaves[1:] {
		leave()
	}
}

// What the agent sends about a session goes to the connection that has it.
func TestSharedProcessAsksOwnersOfSessions(t *testing.T) {
	t.Parallel()
	c, record := scripted.Command(t, capable+opened+`await session/new
answer session/new {"sessionId":"child-2"}
await go
send {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"child-1","n":1}}
send {"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"child-2","n":2}}
replies 2
send {"jsonrpc":"2.0","id":3,"method":"_question","params":{}}
send {"jsonrpc":"2.0","method":"_news","params":{}}
`)
	pool := newPool(t, proxy.PoolLimits{})
	connect := func(initialize string) (backend.Backend, *fakeClient) {
		b, e := pool.New("ann", "", c, proxy.Options{}), newFakeClient(t)
		for _, method := range []string{"session/request_permission", "_question"} {
			e.answer(method, `{}`)
		}
		_, err := b.Initialize(t.Context(), backend.Raw(initialize), e)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
		return b, e
	}
	first, one := connect(`{"protocolVersion":1}`)
	second, two := connect(`{"protocolVersion":1}`)
	connect(`{"protocolVersion":1,"clientCapabilities":{}}`)
	open := func(b backend.Backend, e *fakeClient) {
		_, _, err := b.Open(t.Context(), backend.Activation{Cause: backend.New,
			Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`)}, host{e})
		require.NoError(t, err)
	}
	open(first, one)
	open(second, two)
	second.Notify(t.Context(), "go", backend.Raw(`{}`))
	require.Equal(t, `host call session/request_permission {"n":1}`, one.next())
	require.Equal(t, `host call session/request_permission {"n":2}`, two.next())
	require.Equal(t, `client call _question {}`, two.next())
	require.Equal(t, `client notify _news {}`, one.next())
	require.Equal(t, `client notify _news {}`, two.next())
	require.Len(t, linesOf(t, record, "initialize"), 2, "another initialize has a process of its own")
}

// mute is a client that is never asked.
type mute struct{ backend.Client }

// A connection that ends during initialize leaves the pool once, whichever comes first.
func TestCloseDuringInitialize(t *testing.T) {
	m := newPool(t, proxy.PoolLimits{}).New("ana", "agent",
		proxy.Command{Path: "/bin/sleep", Args: []string{"100"}}, proxy.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Initialize(ctx, backend.Raw(`{"protocolVersion":1}`), mute{})
		ended <- err
	}()
	require.NoError(t, m.Close(t.Context()))
	cancel()
	require.Error(t, <-ended)
}
