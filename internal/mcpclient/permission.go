package mcpclient

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// allowed reports whether the call needs no question: the user said so for the tool, or their policy does.
func (c *call) allowed() bool {
	if c.member.config.Policy.ReadOnly == Allow && c.tool.Hints.ReadOnly {
		return true
	}
	c.member.mu.Lock()
	defer c.member.mu.Unlock()
	return c.member.always[c.tool.fingerprint]
}

// ask asks the user (A30). Nil is a yes; a no is a [*DeniedError].
func (c *call) ask(ctx context.Context) error {
	question := c.shape(pending)
	question.Content = contents([]backend.Raw{textBlock(c.claims())})
	answer, err := c.set.ask(ctx, backend.Question{ToolCall: backend.Encode(question), Offers: []backend.Offer{
		{Answer: backend.AllowOnce, Label: "Allow"},
		{Answer: backend.AllowAlways, Label: "Always allow " + c.name + " in this session"},
		{Answer: backend.RejectOnce, Label: "Reject"},
	}})
	if err != nil {
		return err
	}
	if answer == backend.AllowAlways {
		c.member.mu.Lock()
		defer c.member.mu.Unlock()
		c.member.always[c.tool.fingerprint] = true
	}
	return denied(c.name, answer)
}

// denied is what an answer means for what was asked for: nil, or a [*DeniedError].
func denied(what string, answer backend.Answer) error {
	if answer == backend.AllowOnce || answer == backend.AllowAlways {
		return nil
	}
	return &DeniedError{What: what, Cancelled: answer == backend.Cancelled}
}

// claims is what the server says of the tool.
func (c *call) claims() string {
	var claims []string
	h := c.tool.Hints
	switch {
	case h.ReadOnly:
		claims = append(claims, "changes nothing")
	case h.Destructive:
		claims = append(claims, "may destroy what it changes")
	default:
		claims = append(claims, "changes something")
	}
	if h.OpenWorld {
		claims = append(claims, "reaches out")
	}
	text := fmt.Sprintf("By what MCP server %s says, this tool %s.", named(c.tool.Server), strings.Join(claims, ", and "))
	if c.tool.Description != "" {
		text += "\n\n" + fenced(cut(c.tool.Description, 2000))
	}
	return text
}

// ask asks the user, as long as the session is open.
func (s *Set) ask(ctx context.Context, q backend.Question) (backend.Answer, error) {
	s.mu.Lock()
	host, closed := s.host, s.closed
	s.mu.Unlock()
	if closed || host == nil {
		return backend.RejectOnce, backend.ErrClosed
	}
	return q.Ask(ctx, host)
}
