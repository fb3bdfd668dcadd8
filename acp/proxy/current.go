package proxy

import (
	"context"
	"sync"
)

// current is the child session that an activation uses, with what is saved about it and what it
// must be told next. It lives as long as the activation, and changes when that is opened again in a
// restarted child.
type current struct {
	*activation

	mu      sync.Mutex
	session *childSession // nil once closed
	closed  bool
	state   state // as saved
	// history is the conversation to tell the child in its next prompt, or "".
	history string
	// telling is set while a prompt with context is unanswered. Until the answer, further prompts
	// are sent without context.
	telling bool
}

// get returns the child session, also if it is not running, and its state. Once the activation is
// closed, the child session is nil.
func (c *current) get() (*childSession, state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.state
}

// running returns the child session, or nil if the child is not running or must open it again.
func (c *current) running() *childSession {
	cs, _ := c.get()
	if cs == nil || !cs.isAttached() || !cs.child.running() {
		return nil
	}
	return cs
}

// pin is running with a pin. held is false if the session must be opened again first, or is closed.
func (c *current) pin() (_ pinned, held bool) {
	cs := c.running()
	if cs == nil {
		return pinned{}, false
	}
	pin, held := cs.child.uses.pin()
	return pinned{cs, pin}, held
}

// replace makes cs the child session, unless the activation was closed. It returns the one before,
// nil for none.
func (c *current) replace(cs *childSession, saved state, history string) (*childSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errSessionClosed
	}
	before := c.session
	c.session, c.state, c.history, c.telling = cs, saved, history, false
	return before, nil
}

// close returns the child session that must be left, nil for none.
func (c *current) close() *childSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	cs := c.session
	c.session, c.closed = nil, true
	return cs
}

// promptContext is the context that is sent to a child with a prompt.
type promptContext struct {
	to    *childSession
	text  string // a marked block, or "" for none
	after state  // of the child session once the child has answered the prompt
}

// nextContext returns the context for the next prompt in cs: everything that has changed since the
// child was last told. Until settleContext, further prompts get none.
func (c *current) nextContext(cs *childSession, w *contextWriter) promptContext {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != cs || c.telling {
		return promptContext{}
	}
	var texts []string
	after, told := c.state, w.servers.relays.toldParts()
	for i, part := range w.parts(c.state) {
		known := *part.sent(&c.state)
		if known == "" && told != nil { // what a prompt said is newer
			known = told[i].digest
		}
		switch {
		case part.digest == known:
			continue
		case part.text == "":
			part.text = part.gone
		case known != "":
			part.text = part.changed + part.text
		}
		texts = append(texts, part.text)
		*part.sent(&after) = part.digest
	}
	after.HistoryDue = false
	text := contextBlock(append(texts, c.history)...)
	c.telling = text != ""
	return promptContext{to: cs, text: text, after: after}
}

// settleContext records whether the child has answered the prompt with pc, unless the session was
// opened again in between.
func (c *current) settleContext(ctx context.Context, pc promptContext, answered bool) {
	c.mu.Lock()
	if pc.text == "" || c.session != pc.to {
		c.mu.Unlock()
		return
	}
	c.telling = false
	if answered {
		c.state, c.history = pc.after, ""
	}
	c.mu.Unlock()
	if !answered {
		return
	}
	if err := c.host.SaveState(ctx, pc.after.encode()); err != nil {
		c.proxy.log.Warn("cannot store which context the agent has: it will be sent again",
			"error", err)
	}
}
