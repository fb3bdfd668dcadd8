package acp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The edges of a session's states that the other tests do not take.

func TestA32_APromptDuringALoadWaitsAndSeesItsRoots(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	load, line := c.request("session/load", rootsParams(id, a, b))
	prompt, promptLine := c.request("session/prompt", promptParams(id, "roots"))
	c.send(line, promptLine)
	close(r.hold)
	require.Nil(t, c.response(load).Error)
	require.Equal(t, "end_turn", c.response(prompt).stopReason(t))
	answers := texts(c.messages(), id)
	require.Contains(t, answers[len(answers)-1], b)
}

func TestA32_ACloseDuringALoadComesAfterIt(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	load, line := c.request("session/load", rootsParams(id, a))
	closing, closeLine := c.request("session/close", idParams(id))
	c.send(line, closeLine)
	close(r.hold)
	require.Nil(t, c.response(load).Error)
	require.Nil(t, c.response(closing).Error)
	require.Equal(t, "not_active", c.try("session/prompt", promptParams(id, "x")).reason(t))
}

func TestA12_AFailedLoadLeavesTheTurnRunning(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	r.refuse = errors.New("not today")
	require.Equal(t, jsonrpc.CodeInternal, c.try("session/load", rootsParams(id, a, b)).Error.Code)
	require.Equal(t, "turn_in_progress", c.try("session/prompt", promptParams(id, "x")).reason(t))
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13: the old list is the authoritative one")
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Contains(t, c.texts(id, "roots")[0], a)
	require.NotContains(t, fmt.Sprint(r.noted()), "close")
}

func TestA12_AStoreThatFailsLeavesTheTurnRunning(t *testing.T) {
	store := &failing{Memory: sessionstore.NewMemory()}
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	store.activate = &sessionstore.UnavailableError{Path: "/state/sessions.db", Hint: "free some space", Err: errors.New("disk full")}
	m := c.try("session/resume", rootsParams(id, a, b))
	require.Equal(t, "store_unavailable", m.reason(t))
	require.Contains(t, m.Error.Message, "free some space", "S4")
	require.Contains(t, m.Error.Message, "/state/sessions.db", "S4")
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.NotContains(t, c.texts(id, "roots")[0], b)
}

func TestS8_AStoreThatFailsRefusesThePrompt(t *testing.T) {
	r := &scripted{}
	store := &failing{Memory: sessionstore.NewMemory()}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	id := c.open(folder(t))
	store.begin = &sessionstore.UnavailableError{Path: "/state/sessions.db", Hint: "free some space", Err: errors.New("disk full")}
	require.Equal(t, "store_unavailable", c.try("session/prompt", promptParams(id, "say x")).reason(t))
	require.NotContains(t, r.noted(), "prompt say x", "the runtime acts only on what is stored")
	store.begin = nil
	require.Equal(t, []string{"y"}, c.texts(id, "say y"), "the session goes on")
}

// failing is a store whose medium fails when a test says so.
type failing struct {
	*sessionstore.Memory
	activate, begin error
}

func (f *failing) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if f.activate != nil {
		return sessionstore.Lease{}, f.activate
	}
	return f.Memory.Activate(ctx, id, a)
}

func (f *failing) BeginTurn(ctx context.Context, l sessionstore.Lease, t sessionstore.Turn) error {
	if f.begin != nil {
		return f.begin
	}
	return f.Memory.BeginTurn(ctx, l, t)
}

func TestS3_DeletedElsewhereIsToldApartFromFenced(t *testing.T) {
	store := sessionstore.NewMemory()
	old, newer := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	id := old.open(folder(t))
	newer.call("session/delete", idParams(id))
	require.Equal(t, "not_found", old.try("session/prompt", promptParams(id, "say x")).reason(t))
}

func TestS3_ARunningTurnEndsWhenAnotherProcessTakesItsSession(t *testing.T) {
	store := sessionstore.NewMemory()
	old, newer := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	old.texts(id, "say mine")
	prompt, line := old.request("session/prompt", promptParams(id, "drip"))
	old.send(line)
	old.await(0, said("drip"))
	newer.call("session/load", rootsParams(id, a))
	m := old.response(prompt)
	require.Equal(t, "fenced", m.reason(t))
	require.Contains(t, m.Error.Message, "another window")
	require.Equal(t, []string{"yours"}, newer.texts(id, "say yours"))
}

func TestS1_WhatARuntimeSavesComesBackToIt(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "state of mine")
	c.call("session/close", idParams(id))
	c.call("session/resume", rootsParams(id, a))
	require.Contains(t, fmt.Sprint(r.noted()), "state=of mine")
}
