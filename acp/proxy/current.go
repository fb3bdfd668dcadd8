package proxy

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
)

// current is the child session that a bridge uses, with what is saved about it and what it must be
// told next. It changes when the session is opened again in a restarted child.
type current struct {
	mu      sync.Mutex
	session *childSession // nil once closed
	closed  bool
	state   state // as saved
	// history is the conversation to tell the child in its next prompt, or "".
	history string
	// telling is set while a prompt with context is unanswered. Until the answer, further prompts
	// are sent without context.
	telling bool
	unsent  []*prompt // in order
}

// get returns the child session, also if it is not running, and its state. Once the bridge is
// closed, the child session is nil.
func (c *current) get() (*childSession, state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.state
}

// running returns the child session, or nil if the child is not running or must open it again.
func (c *current) running() *childSession {
	cs, _ := c.get()
	if cs == nil || !cs.isAttached() || !cs.child.Running() {
		return nil
	}
	return cs
}

// pin returns the child session, whose child is pinned until unpin. It returns nil if the session
// must be opened again first, or is closed.
func (c *current) pin() (cs *childSession, unpin child.Unpin) {
	if cs = c.running(); cs == nil {
		return nil, nil
	}
	if unpin = cs.child.Pin(); unpin == nil {
		return nil, nil
	}
	return cs, unpin
}

var errSessionClosed = errors.New("the session was closed")

// replace makes cs the child session, unless the bridge was closed. It returns the one before, nil
// for none.
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

// enqueue adds a prompt to those that were not sent yet, and returns the earlier ones. It is sent
// after them.
func (c *current) enqueue(p *prompt) (earlier []*prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier = slices.Clone(c.unsent)
	c.unsent = append(c.unsent, p)
	return earlier
}

// dequeue notes that a prompt was sent, or will not be.
func (c *current) dequeue(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent = slices.DeleteFunc(c.unsent, func(other *prompt) bool { return other == p })
	close(p.sent)
}

// unsentBlocks returns the number of content blocks of the prompts that were not sent yet. They are
// at the end of the history.
func (c *current) unsentBlocks() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.unsent {
		var prompt struct{ Prompt []json.RawMessage }
		_ = json.Unmarshal(p.params, &prompt) // anything but a list has none
		n += len(prompt.Prompt)
	}
	return n
}

// promptContext is the context that is sent to a child with a prompt.
type promptContext struct {
	to    *childSession
	text  string // a marked block, or "" for none
	after state  // of the child session once the child has answered the prompt
}

// nextContext returns the context for the next prompt in cs, which consists of the parts that have
// changed since the child was last told and of the history. told are the parts that our tool server
// tells it. Until settleContext, further prompts get none.
func (c *current) nextContext(cs *childSession, parts, told []briefing.Part) promptContext {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != cs || c.telling {
		return promptContext{}
	}
	after := c.state
	texts, sent := after.Changes(parts, told)
	after.Sent, after.HistoryDue = sent, false
	text := briefing.Block(append(texts, c.history)...)
	c.telling = text != ""
	return promptContext{to: cs, text: text, after: after}
}

// settleContext notes whether the child has answered the prompt with pc, unless the session was
// opened again in between. It reports whether the state was changed and must be saved.
func (c *current) settleContext(pc promptContext, answered bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc.text == "" || c.session != pc.to {
		return false
	}
	c.telling = false
	if answered {
		c.state, c.history = pc.after, ""
	}
	return answered
}
