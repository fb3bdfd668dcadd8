package client

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Prompt is a prompt of a server.
type Prompt struct {
	// Name is unique in the set: "server:prompt", of letters, digits, "_", "-" and that one colon.
	Name string
	// Definition is the server's definition of the prompt. It must not be modified.
	Definition *mcp.Prompt
}

// listPrompts returns the server's prompts.
func (c *connection) listPrompts(ctx context.Context) ([]Prompt, error) {
	if o := c.peer.InitializeResult().Capabilities; o == nil || o.Prompts == nil {
		return nil, nil
	}
	return c.prompts.get(ctx, func(ctx context.Context) (list[Prompt], error) {
		name := func(p *mcp.Prompt) string { return p.Name }
		fetch := func(cursor string) (page[mcp.Prompt], error) {
			r, err := c.peer.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return page[mcp.Prompt]{}, err
			}
			return page[mcp.Prompt]{r.Prompts, r.NextCursor}, nil
		}
		listed, err := collect(c, "prompts", fetch, name)
		return withNames(listed, name, func(p *mcp.Prompt, unique string) Prompt {
			return Prompt{c.server.prefix + ":" + unique, p}
		}), err
	})
}

// GetPrompt gets the prompt called name, starting its server if necessary. arguments is called to
// get the arguments for it. The error is a [*NotFoundError] if there is no such prompt.
func (s *Set) GetPrompt(
	ctx context.Context, name string, arguments func(*mcp.Prompt) (map[string]string, error),
) (*mcp.GetPromptResult, error) {
	notFound := &NotFoundError{Kind: "prompt", Name: name}
	server, rest, _ := strings.Cut(name, ":")
	one, err := s.find(server)
	if errors.As(err, new(*NotFoundError)) {
		return nil, notFound
	}
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, c *connection) (*mcp.GetPromptResult, error) {
		prompts, err := c.listPrompts(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(prompts, func(p Prompt) bool {
			return p.Name == c.server.prefix+":"+rest || p.Definition.Name == rest
		})
		if i < 0 {
			return nil, notFound
		}
		given, err := arguments(prompts[i].Definition)
		if err != nil {
			return nil, err
		}
		params := &mcp.GetPromptParams{Name: prompts[i].Definition.Name, Arguments: given}
		return c.peer.GetPrompt(ctx, params)
	}
	return fromServer(ctx, one, get)
}
