package model

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// conversation is what the model knows of a session. It is used by one goroutine at a time.
type conversation struct {
	messages []llm.Message
	used     int // tokens of the last request and its answer, as the server has counted them; 0 if it has not
}

// add appends a message.
func (c *conversation) add(m llm.Message) {
	if len(m.Parts) > 0 {
		c.messages = append(c.messages, m)
	}
}

// restore reads the stored history of the session.
func (c *conversation) restore(a backend.Activation) error {
	return nil
}
