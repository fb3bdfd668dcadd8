package model

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
)

// Model describes a model: how to reach it, and what it accepts. Its fields:
//
//	ID string      // the user's name for the model
//	API API        // the wire format of the server; default [OpenAI]
//	BaseURL string // the address of the API, to which "/chat/completions", "/responses" or
//	               // "/v1/messages" is added before a query; by default that of the company that
//	               // defined the API
//	Name string    // the server's name for the model
//
//	Key func(ctx context.Context, rejected string) (string, error)
//	        // returns the key for the server. It is called before each request, with rejected "".
//	        // If the server rejects the key, Key is called again with that key, and if it returns
//	        // another one, the request is sent once more. Nil means that the server needs no key.
//	Headers func() (map[string]string, error)
//	        // returns additional headers for each request, which replace others of the same name.
//	        // It is called before each request. Nil means no headers.
//
//	ContextTokens int // limit of a request and its answer together; by default the number that a
//	                  // server on this machine or in a private network reports, otherwise 128,000
//	MaxTokens int     // limit of an answer, including thinking. Anthropic requires one: the default
//	                  // is 32,000 for Claude 4 and later, and 8,192 for other models. For OpenAI
//	                  // the default is no limit.
//	InstructionTokens int // about how many tokens the instructions of folders may have in a
//	                      // request; 0 for a share of the context
//	Silence time.Duration // how long the server may send no part of an answer; 0 for five minutes
//	TextOnly bool     // the model does not accept images
//	PDF *bool         // whether the model accepts PDF documents. Nil means yes for Claude from 3.5
//	                  // on and for models on OpenAI's own server, and no for others.
//	Prices *Prices    // of the tokens; nil means that no costs are shown
//	Fallback string   // the ID of the model that answers for the rest of a turn if this one's
//	                  // server cannot be reached or is overloaded, "" for none
type Model = llm.Model

// Prices are the prices of a million tokens of a model. Its fields:
//
//	Input    float64 // of requests
//	Cached   float64 // of the part of a request that the server had cached
//	Output   float64 // of answers, including thinking
//	Currency string  // a code of ISO 4217, such as "USD"
type Prices = llm.Prices

// API is the wire format of a model's server.
type API = llm.API

// All wire formats.
const (
	OpenAI    = llm.OpenAI
	Responses = llm.Responses
	Anthropic = llm.Anthropic
)

// Kind is the backend.Info.Kind.
const Kind = "model"

// Options configure the backend.
type Options struct {
	// Models are the models to choose from, with different IDs. There must be at least one. New
	// sessions use the first.
	Models []Model
	// Config is the file in which the user configures the models, for messages. Default: not named.
	Config string
	// Sandbox returns the sandbox for commands of the model with this ID. If Sandbox is nil,
	// commands are not restricted.
	Sandbox func(model string) backend.Sandbox
	// OnlyInSandbox removes the tool that runs commands unless Sandbox restricts them. It does not
	// apply to clients with terminals, which run the commands themselves.
	OnlyInSandbox bool
	// Environment is the environment of commands that do not run in a terminal of the client, as
	// NAME=VALUE. Nil means our environment.
	Environment []string
}

// New returns the backend. It sends nothing until a session has a prompt.
func New(o Options) backend.Backend {
	b := &modelBackend{given: o, serverPatience: 10 * time.Second}
	for _, m := range o.Models {
		b.endpoints = append(b.endpoints, llm.New(m))
	}
	return b
}

type modelBackend struct {
	endpoints []*llm.Client // of the models, in their order
	given     Options
	// terminal reports whether the client offers terminals, and files whether it can read the files
	// that it has open. Initialize sets both.
	terminal, files bool
	// serverPatience is how long a turn waits for MCP servers that are starting.
	serverPatience time.Duration
}

func (b *modelBackend) Initialize(
	_ context.Context, params backend.Raw, _ backend.Client,
) (backend.Info, error) {
	var p struct {
		ClientCapabilities struct {
			Terminal bool
			FS       struct{ ReadTextFile bool }
		}
	}
	_ = json.Unmarshal(params, &p) // the adapter has checked them
	b.terminal, b.files = p.ClientCapabilities.Terminal, p.ClientCapabilities.FS.ReadTextFile
	withImages := func(e *llm.Client) bool { return !e.Model().TextOnly }
	return backend.Info{
		Kind: Kind, SystemPrompts: backend.SystemPromptsServed,
		Usage: backend.Usage{Tokens: backend.TokensOfTurn},
		Initialize: backend.Encode(map[string]any{"agentCapabilities": map[string]any{
			"promptCapabilities": map[string]bool{
				"image": slices.ContainsFunc(b.endpoints, withImages), "embeddedContext": true,
			},
			"auth": map[string]any{"status": struct{}{}}, // the adapter answers
		}}),
	}, nil
}

// endpoint returns the client for the model with an ID, or nil.
func (b *modelBackend) endpoint(id string) *llm.Client {
	for _, e := range b.endpoints {
		if e.Model().ID == id {
			return e
		}
	}
	return nil
}

// Call returns nil: there are no further methods.
func (*modelBackend) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (*modelBackend) Notify(context.Context, string, backend.Raw)            {}

func (b *modelBackend) Close(context.Context) error {
	for _, e := range b.endpoints {
		e.Close()
	}
	return nil
}
