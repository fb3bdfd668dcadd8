package serve

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// outage is a store that can be made unusable.
type outage struct {
	sessionstore.Shared
	down atomic.Bool
}

type unusable struct {
	sessionstore.Store
	down *atomic.Bool
}

func (o *outage) For(owner string) sessionstore.Store {
	return unusable{o.Shared.For(owner), &o.down}
}

func (o *outage) Ping(ctx context.Context) error {
	if o.down.Load() {
		return errOutage
	}
	return o.Shared.Ping(ctx)
}

var errOutage = &sessionstore.UnavailableError{
	Medium: "postgres://db.internal/acp", Hint: "is it running?", Err: errors.New("dial tcp: refused")}

func (u unusable) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	if u.down.Load() {
		return sessionstore.Page{}, errOutage
	}
	return u.Store.List(ctx, q)
}

// An outage of the store is said once, with its end, and the server is not ready meanwhile. Users
// learn nothing of the machines behind the server.
func TestOutageOfTheStore(t *testing.T) {
	store := &outage{Shared: sqlite.NewMemory()}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := start(t, func(o *Options) { o.Store = store })
	e := connect(t, "ws://"+h.address, h.add("ana")).initialize()
	e.lives()
	store.down.Store(true)
	for range 3 {
		failed := e.call("session/list", map[string]any{}).Error
		require.Contains(t, failed.Message, "session store")
		require.NotContains(t, failed.Message+string(failed.Data), "db.internal")
		require.NotContains(t, failed.Message+string(failed.Data), "dial tcp")
	}
	status, body := h.get("/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "the log says why")
	require.Equal(t, 1, h.log.Count("the session store cannot be used"))
	require.Contains(t, h.log.String(), "db.internal")
	require.Contains(t, h.metrics.text(h.usage()), "acp_agent_store_usable 0\n")

	store.down.Store(false)
	require.Eventually(t, func() bool {
		status, _ := h.get("/readyz", "")
		return status == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	require.Contains(t, h.metrics.text(h.usage()), "acp_agent_store_usable 1\n")
	require.Equal(t, 1, h.log.Count("the session store can be used again"))
	require.Contains(t, h.log.String(), "failedRequests=3")
}

// Requests for readiness do not load the store, also if nobody has signed in.
func TestReadinessAsksTheStoreOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := health{store: countedPings{pings: &asked}}
		for range 100 {
			require.NoError(t, h.check(t.Context()))
		}
		require.Equal(t, 1, asked)
		time.Sleep(2 * time.Second)
		require.NoError(t, h.check(t.Context()))
		require.Equal(t, 2, asked)
	})
}

// countedPings counts how often it is asked whether it can be used.
type countedPings struct {
	sessionstore.Shared
	pings *int
}

func (c countedPings) Ping(context.Context) error {
	*c.pings++
	return nil
}
