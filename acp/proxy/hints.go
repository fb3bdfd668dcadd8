package proxy

import (
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// maxDenials limits the paths and hosts that are explained in a session.
const maxDenials = 100

// hints are what the user of a session is told of the sandbox, each path and host once. They live
// as long as the bridge.
type hints struct {
	mu             sync.Mutex // held while they are told
	denied, untold []string
}

// add remembers an explanation of a denied path or host.
func (h *hints) add(d child.Denial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.Explanation != "" && len(h.denied) < maxDenials && !slices.Contains(h.denied, d.Target) {
		h.denied, h.untold = append(h.denied, d.Target), append(h.untold, d.Explanation)
	}
}

// noteDenial remembers an explanation for the user if the sandbox made a tool call fail.
func (h *hints) noteDenial(c *child.Process, u backend.Update) {
	if u.Kind == sessionstore.ToolCall || u.Kind == sessionstore.ToolCallUpdate {
		h.add(c.ExplainCall(u.Raw))
	}
}

// tell tells the user in the turn of a prompt what the sandbox has denied c so far. What was not
// sent is told in the next turn.
func (h *hints) tell(p *prompt, c *child.Process) {
	for _, d := range c.RefusedHosts() {
		h.add(d)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.untold) > 0 {
		warning := backend.Warning(backend.Text("\n\n" + h.untold[0] + "\n\n"))
		if err := p.updates.Update(p.ctx, warning); err != nil {
			c.Log.Debug("an explanation of the sandbox was not sent", "error", err)
			return
		}
		h.untold = h.untold[1:]
	}
}

// tellRefusal tells the users of a child that the sandbox does not let it connect to a host. In
// running turns they are told at once: an agent may try to reach its model for minutes.
func (p *proxy) tellRefusal(c *child.Process) {
	for _, u := range p.childUses() {
		if now := u.bridge.current.running(); u.child == c && now != nil {
			if _, turn := now.session.latest(); turn != nil {
				go u.bridge.hints.tell(turn, c)
			}
		}
	}
}
