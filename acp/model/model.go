package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Model says where a model is and how to ask it.
type Model = llm.Model

// API is the wire format of a model's server.
type API = llm.API

// All wire formats.
const (
	OpenAI    = llm.OpenAI
	Anthropic = llm.Anthropic
)

// Kind is the backend.Info.Kind.
const Kind = "model"

// Options configure the backend.
type Options struct {
	// Models are the models to choose from, with different IDs. New sessions use the first. There
	// must be one.
	Models []Model
	// Logger receives a line at level debug for each request, without content. Default: discarded.
	Logger *slog.Logger
}

// New returns the backend. It sends nothing until a session has a prompt.
func New(o Options) backend.Backend {
	b := &modelBackend{logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), serverPatience: 10 * time.Second}
	for _, m := range o.Models {
		b.clients = append(b.clients, llm.New(m))
	}
	return b
}

type modelBackend struct {
	clients  []*llm.Client // of the models, in their order
	logger   *slog.Logger
	terminal bool // whether the client offers terminals; set by Initialize
	// serverPatience is how long a turn waits for MCP servers that are starting.
	serverPatience time.Duration
}

func (b *modelBackend) Initialize(_ context.Context, params backend.Raw, _ backend.Client) (backend.Info, error) {
	var p struct {
		ClientCapabilities struct{ Terminal bool }
	}
	_ = json.Unmarshal(params, &p) // the adapter has checked them
	b.terminal = p.ClientCapabilities.Terminal
	images := slices.ContainsFunc(b.clients, func(c *llm.Client) bool { return !c.Model().TextOnly })
	return backend.Info{
		Kind: Kind, Command: "acp-agent --model " + b.clients[0].Model().ID,
		Initialize: backend.Encode(map[string]any{"agentCapabilities": map[string]any{
			"promptCapabilities": map[string]bool{"image": images, "embeddedContext": true},
		}}),
	}, nil
}

// client returns the client of the model with an ID, or nil.
func (b *modelBackend) client(id string) *llm.Client {
	for _, c := range b.clients {
		if c.Model().ID == id {
			return c
		}
	}
	return nil
}

// stream asks a model as [llm.Client.Stream] does, and logs the request without its content.
func (b *modelBackend) stream(ctx context.Context, client *llm.Client, r llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		begin := time.Now()
		var finish llm.Finish
		outcome, status := "interrupted", 0
		for event, err := range client.Stream(ctx, r) {
			if failed, ok := errors.AsType[*llm.Error](err); ok {
				outcome, status = string(failed.Kind), failed.Status
			}
			if f, ok := event.(llm.Finish); ok {
				finish, outcome, status = f, string(f.Reason), http.StatusOK
			}
			if !yield(event, err) {
				break
			}
		}
		b.logger.Debug("asked a model", "model", client.Model().ID, "outcome", outcome, "status", status, "inputTokens", finish.Usage.Input,
			"cachedTokens", finish.Usage.Cached, "outputTokens", finish.Usage.Output, "duration", time.Since(begin))
	}
}

// maxCollected bounds the answer that collect returns, in bytes.
const maxCollected = 256 << 10

// collect asks a model and returns the text of its answer, cut off if it is too long. It calls
// onRetry before a request is sent again.
func (b *modelBackend) collect(ctx context.Context, client *llm.Client, r llm.Request, onRetry func(llm.Retry) error) (string, llm.Finish, error) {
	var answer strings.Builder
	var finish llm.Finish
	for event, err := range b.stream(ctx, client, r) {
		switch e := event.(type) {
		case llm.TextDelta:
			answer.WriteString(string(e))
		case llm.Retry:
			err = onRetry(e)
		case llm.Finish:
			finish = e
		}
		if err != nil {
			return "", finish, err
		}
		if answer.Len() > maxCollected {
			return text.Prefix(answer.String(), maxCollected), llm.Finish{Reason: llm.Length}, nil
		}
	}
	return answer.String(), finish, nil
}

// Call returns nil: there are no further methods.
func (*modelBackend) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (*modelBackend) Notify(context.Context, string, backend.Raw)            {}

func (b *modelBackend) Close(context.Context) error {
	for _, c := range b.clients {
		c.Close()
	}
	return nil
}
