package mcpservers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/runtime"
)

const methodPermission = "session/request_permission"

// The answers to a question for permission.
const (
	allowOnce   = "allow-once"
	allowAlways = "allow-always"
	rejectOnce  = "reject-once"
)

type permissionRequest struct {
	ToolCall toolCall           `json:"toolCall"`
	Options  []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

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
	question.Content = contents([]runtime.Raw{textBlock(c.claims())})
	answer, err := c.set.question(ctx, permissionRequest{
		ToolCall: question,
		Options: []permissionOption{
			{allowOnce, "Allow", "allow_once"},
			{allowAlways, "Always allow " + c.name + " in this session", "allow_always"},
			{rejectOnce, "Reject", "reject_once"},
		},
	})
	switch {
	case err != nil:
		return err
	case answer == allowAlways:
		c.member.mu.Lock()
		defer c.member.mu.Unlock()
		c.member.always[c.tool.fingerprint] = true
		return nil
	case answer == allowOnce:
		return nil
	default:
		return &DeniedError{What: c.name, Cancelled: answer == cancelled}
	}
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
	text := fmt.Sprintf("By what MCP server %s says, this tool %s.", c.tool.Server, strings.Join(claims, ", and "))
	if c.tool.Description != "" {
		text += "\n\n" + cut(c.tool.Description, 2000)
	}
	return text
}

// cancelled is the answer of a user who cancelled the turn instead.
const cancelled = "cancelled"

// question asks the user, and returns the id of the option that they chose, or cancelled.
func (s *Set) question(ctx context.Context, q permissionRequest) (string, error) {
	s.mu.Lock()
	host, closed := s.host, s.closed
	s.mu.Unlock()
	if closed || host == nil {
		return "", runtime.ErrClosed
	}
	return question(ctx, host, q)
}

func question(ctx context.Context, client runtime.Client, q permissionRequest) (string, error) {
	raw, err := client.Call(ctx, methodPermission, encodeJSON(q))()
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("the client could not be asked for permission: %w", err)
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return "", fmt.Errorf("the client's answer to a question for permission cannot be read: %w", err)
	}
	switch answer.Outcome.Outcome {
	case cancelled:
		return cancelled, nil
	case "selected":
		return answer.Outcome.OptionID, nil
	default:
		return rejectOnce, nil // an outcome that nobody here knows is no yes
	}
}
