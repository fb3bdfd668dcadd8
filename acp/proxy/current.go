package proxy

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
)

// current is the use of the child session that a bridge has, with what is saved about the session
// and what it must be told next. It changes when the session is opened again in a restarted child.
type current struct {
	mu     sync.Mutex
	use    *childUse // nil before one is open, and once closed
	closed bool
	state  state // as saved
	// history is the conversation to tell the child in its next prompt, or "".
	history string
	// telling is set while a prompt with context is unanswered. Until the answer, further prompts
	// are sent without context.
	telling bool
	unsent  []*prompt // in order
}

// get returns the use, also if the child is not running, and the state of the child session. Once
// the bridge is closed, the use is nil.
func (c *current) get() (*childUse, state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.use, c.state
}

// running returns the use, or nil if the child is not running or must open the session again.
func (c *current) running() *childUse {
	u, _ := c.get()
	if u == nil || !u.session.isAttached() || !u.child.Running() {
		return nil
	}
	return u
}

// pin returns the use, whose child is pinned until unpin. It returns nil if the session must be
// opened again first, or is closed.
func (c *current) pin() (u *childUse, unpin child.Unpin) {
	if u = c.running(); u == nil {
		return nil, nil
	}
	if unpin = u.child.Pin(); unpin == nil {
		return nil, nil
	}
	return u, unpin
}

var errSessionClosed = errors.New("the session was closed")

// replace makes u the use, unless the bridge was closed. It returns the one before, which must be
// closed, nil for none.
func (c *current) replace(u *childUse, saved state, history string) (before *childUse, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errSessionClosed
	}
	before = c.use
	c.use, c.state, c.history, c.telling = u, saved, history, false
	return before, nil
}

// close returns the use that must be closed, nil for none. There is none from now on.
func (c *current) close() *childUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.use
	c.use, c.closed = nil, true
	return u
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
	to    *childUse
	text  string // a marked block, or "" for none
	after state  // of the child session once the child has answered the prompt
}

// nextContext returns the context for the next prompt to u, which consists of the parts that have
// changed since the child was last told and of the history. told are the parts that our tool server
// tells it. Until settleContext, further prompts get none.
func (c *current) nextContext(u *childUse, parts, told []briefing.Part) promptContext {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.use != u || c.telling {
		return promptContext{}
	}
	after := c.state
	texts, sent := after.Changes(parts, told)
	after.Sent, after.HistoryDue = sent, false
	text := briefing.Block(append(texts, c.history)...)
	c.telling = text != ""
	return promptContext{to: u, text: text, after: after}
}

// settleContext notes whether the child has answered the prompt with pc, unless the session was
// opened again in between. It reports whether the state was changed and must be saved.
func (c *current) settleContext(pc promptContext, answered bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc.text == "" || c.use != pc.to {
		return false
	}
	c.telling = false
	if answered {
		c.state, c.history = pc.after, ""
	}
	return answered
}
