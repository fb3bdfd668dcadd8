package acp_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// within waits for a result, as long as a test is patient.
func within[T any](t *testing.T, results <-chan T) (result T) {
	t.Helper()
	select {
	case result = <-results:
	case <-time.After(patience):
		require.Fail(t, "it did not end")
	}
	return result
}

func TestW11_WhatIsSaidBehindALifecycleResponseIsNotLost(t *testing.T) {
	const before, behind = 900, 3000
	all := numbers(before + behind)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{Wire: jsonrpc.Options{
		MaxQueue: 16 << 10,
		Tap: func(d jsonrpc.Direction, line []byte) {
			if d == jsonrpc.Sent && bytes.Contains(line, []byte(`"messageId":"0"`)) {
				begin()
			}
		},
	}}))
	c.initialize()
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) {
		host = h
		for _, text := range all[:before] {
			require.NoError(t, h.Update(t.Context(), apart(text)))
		}
	}
	goOn := c.stall()
	defer goOn()
	request, line := c.request("session/new", rootsParams("", folder(t)))
	c.send(line)
	within(t, begun)
	said := make(chan error, 1)
	go func() {
		var err error
		for _, text := range all[before:] {
			if err == nil {
				err = host.Update(t.Context(), apart(text))
			}
		}
		said <- err
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, host.Update(ended, apart("never")), context.Canceled)
	goOn()
	require.NoError(t, within(t, said))
	c.response(request)
	last := all[len(all)-1]
	_, at := c.await(0, func(m message) bool { return strings.Contains(string(m.Params), `"messageId":"`+last+`"`) })
	id := c.list(`{}`)[0].SessionID
	require.Equal(t, all, texts(c.messages()[:at+1], id))
}

func TestW11_WhatIsHeldForALifecycleResponseIsBounded(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	fit := func(text string) (n int) {
		r.opened = func(_ backend.Activation, h backend.Host) {
			for n = 0; n < 2000; n++ {
				if err := h.Update(t.Context(), apart(text)); err != nil {
					require.ErrorIs(t, err, backend.ErrTooManyUpdates)
					require.ErrorContains(t, err, "1,000")
					require.ErrorContains(t, err, "4 MiB")
					return
				}
			}
		}
		c.try("session/new", rootsParams("", folder(t)))
		return n
	}
	require.Equal(t, 1000, fit("x"))
	require.Less(t, fit(strings.Repeat("x", 1<<20)), 5)
}

func TestW6_AnUpdateBehindABlockedOneEndsWithItsContext(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	c.initialize()
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) { host = h }
	id := c.open(folder(t))
	c.texts(id, "say open")
	goOn := c.stall()
	defer goOn()
	said := make(chan error, 1)
	go func() {
		var err error
		for _, text := range numbers(1000) {
			if err == nil {
				err = host.Update(t.Context(), apart(text))
			}
		}
		said <- err
	}()
	for range 20 { // sooner or later the other one has the turn
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = host.Update(ctx, apart("more"))
		}()
		within(t, ended)
		cancel()
	}
	goOn()
	require.NoError(t, within(t, said))
}

func TestW11_ATitleIsStoredBesideTheWire(t *testing.T) {
	store := &hooked{Memory: sessionstore.NewMemory()}
	r := &scripted{}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) { host = h }
	id := c.open(folder(t))
	c.texts(id, "say open")
	busy := make(chan struct{})
	store.titling = func() { <-busy }
	said := make(chan error, 1)
	go func() {
		err := host.Update(t.Context(), backend.Update(`{"update":{"sessionUpdate":"session_info_update","title":"T"}}`))
		if err == nil {
			err = host.Update(t.Context(), say("behind it"))
		}
		said <- err
	}()
	require.NoError(t, within(t, said))
	texts := func(m message) bool { return strings.Contains(string(m.Params), "behind it") }
	c.await(0, texts)
	close(busy)
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	require.Equal(t, "T", c.find(id).Title)
}
