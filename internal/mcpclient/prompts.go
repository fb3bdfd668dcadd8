package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// Prompts implements [backend.Tools].
func (s *Set) Prompts(ctx context.Context) ([]backend.Prompt, error) {
	return fromEach(ctx, s, func(ctx context.Context, c *connection) ([]backend.Prompt, error) { return c.listPrompts(ctx) })
}

// listPrompts returns the server's prompts.
func (c *connection) listPrompts(ctx context.Context) ([]backend.Prompt, error) {
	if offered := c.session.InitializeResult().Capabilities; offered == nil || offered.Prompts == nil {
		return nil, nil
	}
	return c.prompts.get(ctx, func(ctx context.Context) ([]backend.Prompt, error) {
		listed, err := collect(c, "prompts", c.session.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name })
		if err != nil {
			return nil, err
		}
		names := make([]string, len(listed))
		for i, p := range listed {
			names[i] = p.Name
		}
		prompts := make([]backend.Prompt, len(listed))
		for i, name := range uniqueNames(names, nil) {
			p := listed[i]
			prompts[i] = backend.Prompt{
				Name: c.server.prefix + "." + name, Server: c.server.config.Name, Remote: p.Name, Title: p.Title, Description: p.Description,
			}
			for _, a := range p.Arguments {
				if a != nil {
					prompts[i].Arguments = append(prompts[i].Arguments, backend.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
				}
			}
		}
		return prompts, nil
	})
}

// Prompt implements [backend.Tools].
func (s *Set) Prompt(ctx context.Context, name string, arguments map[string]string) ([]backend.PromptMessage, error) {
	unknown := &backend.UnknownNameError{Kind: "prompt", Name: name}
	prefix, _, _ := strings.Cut(name, ".")
	one, err := s.find(prefix)
	if errors.Is(err, errNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return fromServer(ctx, one, func(ctx context.Context, c *connection) ([]backend.PromptMessage, error) {
		prompts, err := c.listPrompts(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range prompts {
			if p.Name == name {
				return c.getPrompt(ctx, p.Remote, arguments)
			}
		}
		return nil, unknown
	})
}

func (c *connection) getPrompt(ctx context.Context, name string, arguments map[string]string) ([]backend.PromptMessage, error) {
	r, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, err
	}
	content := boundedContent{left: c.server.set.options.limits.MaxResultBytes}
	var messages []backend.PromptMessage
	for _, m := range r.Messages {
		if m == nil {
			continue
		}
		before := len(content.blocks)
		content.add(m.Content)
		for _, block := range content.blocks[before:] {
			messages = append(messages, backend.PromptMessage{Role: string(m.Role), Content: block})
		}
	}
	return messages, nil
}

// Resources implements [backend.Tools].
func (s *Set) Resources(ctx context.Context) ([]backend.Resource, error) {
	return fromEach(ctx, s, func(ctx context.Context, c *connection) ([]backend.Resource, error) { return c.listResources(ctx) })
}

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]backend.Resource, error) {
	if offered := c.session.InitializeResult().Capabilities; offered == nil || offered.Resources == nil {
		return nil, nil
	}
	return c.resources.get(ctx, func(ctx context.Context) ([]backend.Resource, error) {
		listed, err := collect(c, "resources", c.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
		if err != nil {
			return nil, err
		}
		resources := make([]backend.Resource, len(listed))
		for i, r := range listed {
			resources[i] = backend.Resource{
				Server: c.server.config.Name, URI: r.URI, Name: r.Name, Title: r.Title, MIME: r.MIMEType, Description: r.Description, Size: r.Size,
			}
		}
		return resources, nil
	})
}

// ReadResource implements [backend.Tools].
func (s *Set) ReadResource(ctx context.Context, server, uri string) ([]backend.Raw, error) {
	one, err := s.find(server)
	if errors.Is(err, errNotFound) {
		return nil, &backend.UnknownNameError{Kind: "server named", Name: server}
	}
	if err != nil {
		return nil, err
	}
	return fromServer(ctx, one, func(ctx context.Context, c *connection) ([]backend.Raw, error) {
		r, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return nil, err
		}
		content := boundedContent{left: s.options.limits.MaxResultBytes}
		for _, resource := range r.Contents {
			if raw, err := json.Marshal(resource); resource != nil && err == nil {
				content.addRaw(backend.Encode(map[string]any{"type": "resource", "resource": backend.Raw(raw)}))
			}
		}
		return content.blocks, nil
	})
}
