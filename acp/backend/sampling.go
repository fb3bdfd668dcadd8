package backend

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"
)

// Sampler is implemented by a [Session] with a language model that the session's MCP servers may
// use. The adapter declares sampling to the servers, and asks the user before each request and
// before it passes on each answer. Its methods are safe for concurrent use, and may be called
// during a turn.
type Sampler interface {
	// SamplingModel returns the name of the model that answers a request: the first model whose
	// name contains one of the server's hints, otherwise the model in use.
	SamplingModel(hints []string) string
	// SamplingContext returns the part of the conversation with the calls of one server's tools,
	// whose names begin with prefix, or all of it if prefix is "". It is a text of limited size, or
	// "".
	SamplingContext(prefix string) string
	// Sample asks the model. It returns the cause of ctx if that ends first.
	Sample(ctx context.Context, r SampleRequest) (SampleResult, error)
}

// SampleRequest is a request of an MCP server to the model. The user has allowed it.
type SampleRequest struct {
	// Model is the result of [Sampler].SamplingModel that the user was shown.
	Model string
	// System is the system prompt, and Context what is added to it from the conversation.
	System, Context string
	Messages        []SampleMessage
	// MaxTokens bounds the answer. It is positive.
	MaxTokens int
	// Temperature is nil for the model's default.
	Temperature *float64
	// Stop are texts that end the answer.
	Stop []string
}

// SampleMessage is a message for the model.
type SampleMessage struct {
	// Role is "user" or "assistant".
	Role string
	// Content are texts and images.
	Content []sdk.ContentBlock
}

// SampleResult is the model's answer.
type SampleResult struct {
	Text string
	// Model is the server's name for the model.
	Model string
	// StopReason is one of MCP's: "endTurn", "stopSequence" or "maxTokens".
	StopReason string
	// Input and Output count tokens, 0 if the model's server did not say.
	Input, Output int
}
