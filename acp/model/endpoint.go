package model

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Model describes a model: how to reach it, and what it accepts.
type Model struct {
	// ID is the user's name for the model.
	ID string
	// API is the wire format of the server. Default: [OpenAI].
	API API
	// BaseURL is the address of the API, to which "/chat/completions", "/responses" or
	// "/v1/messages" is added before a query. Default: that of the company that defined the API.
	BaseURL string
	// Name is the server's name for the model.
	Name string
	// Key returns the key for the server. It is called before each request, with rejected "". If
	// the server rejects the key, Key is called again with that key, and if it returns another one,
	// the request is sent once more. Nil means that the server needs no key.
	Key func(ctx context.Context, rejected string) (string, error)
	// Headers returns additional headers for each request, which replace others of the same name.
	// It is called before each request. Nil means no headers.
	Headers func() (map[string]string, error)
	// ContextTokens is the limit of a request and its answer together. Default: the number that a
	// server on this machine or in a private network reports, otherwise 128,000.
	ContextTokens int
	// MaxTokens is the limit of an answer, including thinking. Anthropic requires one: the default
	// is 32,000 for Claude 4 and later, and 8,192 for other models. For OpenAI the default is no
	// limit.
	MaxTokens int
	// InstructionTokens is about how many tokens the instructions of folders may have in a request,
	// 0 for a share of the context.
	InstructionTokens int
	// Silence is how long the server may send no part of an answer. Default: five minutes.
	Silence time.Duration
	// TextOnly means that the model does not accept images.
	TextOnly bool
	// PDF says whether the model accepts PDF documents. Nil means yes for Claude from 3.5 on and
	// for models on OpenAI's own server, and no for others.
	PDF *bool
	// Prices are those of the tokens. Nil means that no costs are shown.
	Prices *Prices
	// Fallback is the ID of the model that answers for the rest of a turn if this one's server
	// cannot be reached or is overloaded, "" for none.
	Fallback string
}

// API is the wire format of a model's server, a string.
type API = llm.API

// All wire formats: OpenAI's chat completions and responses, and Anthropic's messages.
const (
	OpenAI    = llm.OpenAI
	Responses = llm.Responses
	Anthropic = llm.Anthropic
)

// Prices are the prices of a million tokens of a model.
type Prices struct {
	// Input is the price of requests, Cached of the part of a request that the server had cached,
	// and Output of answers, including thinking.
	Input, Cached, Output float64
	// Currency is a code of ISO 4217, such as "USD".
	Currency string
}

// cost returns what a request and its answer cost.
func (p Prices) cost(u llm.Usage) float64 {
	cached := min(u.Cached, u.Input)
	return (float64(u.Input-cached)*p.Input + float64(cached)*p.Cached +
		float64(u.Output)*p.Output) / 1e6
}

// endpoint is a model that the user has configured, and the client of its server.
type endpoint struct {
	*llm.Client
	given Model
}

func newEndpoint(m Model) *endpoint {
	return &endpoint{given: m, Client: llm.New(llm.Model{API: m.API, BaseURL: m.BaseURL,
		Name: m.Name, Key: m.Key, Headers: m.Headers, ContextTokens: m.ContextTokens,
		MaxTokens: m.MaxTokens, Silence: m.Silence, TextOnly: m.TextOnly, PDF: m.PDF,
		HasFallback: m.Fallback != ""})}
}

// code returns the model's ID as code.
func (e *endpoint) code() string { return text.Code(e.given.ID) }
