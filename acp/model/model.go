package model

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
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
		b.endpoints = append(b.endpoints, newEndpoint(m))
	}
	return b
}

type modelBackend struct {
	endpoints []*endpoint // of the models, in their order
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
	withImages := func(e *endpoint) bool { return !e.Model().TextOnly }
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

// endpoint returns the endpoint of the model with an ID, or nil.
func (b *modelBackend) endpoint(id string) *endpoint {
	for _, e := range b.endpoints {
		if e.given.ID == id {
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
