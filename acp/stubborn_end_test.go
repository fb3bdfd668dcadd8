package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// A turn whose runtime goes on is answered before the program ends, although it would have been waited for longer.
func TestW9_ATurnThatDoesNotEndIsAnsweredAsCancelledAtTheEnd(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{CancelGrace: patience}))
	c.initialize()
	id := c.open(folder(t))
	prompt, line := c.request("session/prompt", promptParams(id, "stubborn"))
	c.send(line)
	c.await(0, said("stubborn"))
	c.leave()
	close(r.release)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
}
