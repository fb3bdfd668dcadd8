package acp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// starting is a scripted runtime whose Initialize does something first.
type starting struct {
	scripted
	first func()
}

func (s *starting) Initialize(ctx context.Context, params runtime.Raw, c runtime.Client) (runtime.Info, error) {
	s.first()
	return s.scripted.Initialize(ctx, params, c)
}

func TestW8_AnInitializeThatPanicsIsNoSuccess(t *testing.T) {
	failing := true
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime {
		return &starting{first: func() {
			if failing {
				panic("first time")
			}
		}}
	}})
	require.Equal(t, wire.CodeInternal, c.try("initialize", `{"protocolVersion":1}`).Error.Code)
	require.Equal(t, "not_initialized", c.try("session/new", rootsParams("", folder(t))).reason(t))
	failing = false
	c.initialize()
	c.open(folder(t))
}

func TestW5_ACancelDuringInitializeIsNotLost(t *testing.T) {
	store := sessionstore.NewMemory()
	before := connect(t, acp.Options{Store: store})
	before.initialize()
	a := folder(t)
	id := before.open(a)
	before.leave()

	started := make(chan struct{})
	c := connect(t, acp.Options{Store: store, Runtime: func() runtime.Runtime {
		return &starting{first: func() { <-started }}
	}})
	_, initialize := c.request("initialize", `{"protocolVersion":1}`)
	_, load := c.request("session/load", rootsParams(id, a))
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(initialize, load, line, notification("session/cancel", idParams(id)))
	unknown, line := c.request("_unknown", `{}`)
	c.send(line) // was read behind the cancel
	close(started)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Equal(t, wire.CodeMethodNotFound, c.response(unknown).Error.Code)
}

func TestA29_AForkKeepsItsTitle(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a := folder(t)
	source := c.open(a)
	c.texts(source, "say first")
	var result struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(source, a)), &result))
	c.texts(result.SessionID, "say second")
	require.Equal(t, "say first", c.find(result.SessionID).Title)
	require.NotContains(t, encode(c.messages()), `"title":"say second"`)
}
