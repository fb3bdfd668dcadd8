package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestS1_WhatARuntimeSavesDuringTheCommitIsStored(t *testing.T) {
	store := &hooked{Memory: sessionstore.NewMemory()}
	r := &scripted{}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) {
		host = h
		require.NoError(t, h.SaveState(t.Context(), []byte("early")))
	}
	late := func() { require.NoError(t, host.SaveState(t.Context(), []byte("late"))) }
	saved := func(id string) string {
		session, err := store.Get(t.Context(), sessionstore.ID(id))
		require.NoError(t, err)
		return string(session.State)
	}
	a := folder(t)
	early := c.open(a)
	require.Equal(t, "early", saved(early))
	store.creating = late
	id := c.open(a)
	require.Equal(t, "late", saved(id))
	store.activating = late
	c.call("session/load", rootsParams(early, a))
	require.Equal(t, "late", saved(early))
}

func TestS3_AFencedStateEndsTheSession(t *testing.T) {
	store := sessionstore.NewMemory()
	r := &scripted{}
	old := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	newer := connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	old.call("_save", idParams(id))
	newer.call("session/load", rootsParams(id, a))
	require.Contains(t, old.try("_save", idParams(id)).Error.Message, "another window")
	require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(r.noted()), "close") }, patience, time.Millisecond,
		"it frees its roots, though it writes nothing more")
	require.Equal(t, "not_active", old.try("session/set_mode", idParams(id)).reason(t))
}

func TestW9_NothingIsCommittedOnceTheConnectionHasEnded(t *testing.T) {
	store := sessionstore.NewMemory()
	r := &scripted{hold: make(chan struct{})}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }}.With(acp.Tuning{Wire: jsonrpc.Options{Grace: time.Millisecond}}))
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	before, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	_, line := c.request("session/load", rootsParams(id, a, b))
	c.send(line)
	require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(r.noted()), "open session/load") }, patience, time.Millisecond)
	c.leave()
	require.Equal(t, 1, strings.Count(fmt.Sprint(r.noted()), "close"))
	close(r.hold)
	require.Eventually(t, func() bool { return strings.Count(fmt.Sprint(r.noted()), "close") == 2 }, patience, time.Millisecond,
		"what it opened is freed")
	after, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestW6_AnUpdateFailsOnceItsContextHasEnded(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	id := c.open(folder(t))
	prompt, line := c.request("session/prompt", promptParams(id, "mute"))
	c.send(line, notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	if strings.Contains(fmt.Sprint(r.noted()), "prompt mute") { // it was not cancelled before
		require.Contains(t, r.noted(), "update after the end: "+backend.ErrCancelled.Error())
	}
	require.NotContains(t, encode(c.messages()), "after the end")
}
