package llm

import (
	"context"
	"iter"
)

// Client asks one model. It is safe for concurrent use.
type Client struct{ model Model }

// New returns a client for m. It connects when it is used.
func New(m Model) *Client { return &Client{m} }

// Model returns the model that the client asks, with its defaults.
func (c *Client) Model() Model { return c.model }

// Stream sends the request and yields what arrives, in order: complete tool calls, each once, and at the end a [Finish]. An error ends
// it, and is an [*Error] unless ctx has ended, which returns its cause. A request that failed before anything arrived is sent again after a
// [Retry]; one that failed later is not. Breaking out of the loop ends the request.
func (c *Client) Stream(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		yield(nil, &Error{Kind: Rejected, Message: "not implemented"})
	}
}
