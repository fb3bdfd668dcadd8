package mcpclient

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// prompt and resource are what a server lists. A prompt's name in the catalogue lacks the server's prefix.
type (
	prompt   struct{ backend.Prompt }
	resource struct{ backend.Resource }
)

// Prompts implements [backend.Tools].
func (s *Set) Prompts(ctx context.Context) ([]backend.Prompt, error) {
	return each(ctx, s, func(ctx context.Context, m member, l *link) ([]backend.Prompt, error) {
		prompts, err := l.prompts(ctx)
		named := make([]backend.Prompt, len(prompts))
		for i, p := range prompts {
			named[i] = p.Prompt
			named[i].Name = m.prefix + "." + p.Name
		}
		return named, err
	})
}

func (l *link) prompts(ctx context.Context) ([]prompt, error) {
	if c := l.session.InitializeResult().Capabilities; c == nil || c.Prompts == nil {
		return nil, nil
	}
	return l.lists.prompts.get(ctx, func(ctx context.Context) ([]prompt, error) {
		listed, err := taken(l, "prompts", l.session.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name })
		if err != nil {
			return nil, err
		}
		prompts, names := make([]prompt, len(listed)), make([]string, len(listed))
		for i, p := range listed {
			prompts[i], names[i] = l.describePrompt(p), p.Name
		}
		for i, name := range distinct(names) {
			prompts[i].Name = name
		}
		return prompts, nil
	})
}

func (l *link) describePrompt(p *mcp.Prompt) prompt {
	described := backend.Prompt{Server: l.server.config.Name, Remote: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		if a != nil {
			described.Arguments = append(described.Arguments, backend.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
		}
	}
	return prompt{described}
}

// Prompt implements [backend.Tools].
func (s *Set) Prompt(ctx context.Context, name string, arguments map[string]string) ([]backend.PromptMessage, error) {
	unknown := &backend.UnknownNameError{Kind: "prompt", Name: name}
	prefix, rest, _ := strings.Cut(name, ".")
	m, err := s.find(prefix)
	if err == errNotFound {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return ofServer(ctx, m, func(ctx context.Context, _ member, l *link) ([]backend.PromptMessage, error) {
		prompts, err := l.prompts(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range prompts {
			if p.Name == rest {
				return l.prompt(ctx, p.Remote, arguments)
			}
		}
		return nil, unknown
	})
}

func (l *link) prompt(ctx context.Context, name string, arguments map[string]string) ([]backend.PromptMessage, error) {
	r, err := l.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, err
	}
	b := bounded{left: l.server.set.options.MaxResult}
	var messages []backend.PromptMessage
	for _, m := range r.Messages {
		if m == nil || m.Content == nil {
			continue
		}
		before := len(b.blocks)
		b.add(m.Content)
		for _, block := range b.blocks[before:] {
			messages = append(messages, backend.PromptMessage{Role: string(m.Role), Content: block})
		}
	}
	return messages, nil
}

// Resources implements [backend.Tools].
func (s *Set) Resources(ctx context.Context) ([]backend.Resource, error) {
	return each(ctx, s, func(ctx context.Context, _ member, l *link) ([]backend.Resource, error) {
		resources, err := l.resources(ctx)
		plain := make([]backend.Resource, len(resources))
		for i, r := range resources {
			plain[i] = r.Resource
		}
		return plain, err
	})
}

func (l *link) resources(ctx context.Context) ([]resource, error) {
	if c := l.session.InitializeResult().Capabilities; c == nil || c.Resources == nil {
		return nil, nil
	}
	return l.lists.resources.get(ctx, func(ctx context.Context) ([]resource, error) {
		listed, err := taken(l, "resources", l.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
		if err != nil {
			return nil, err
		}
		resources := make([]resource, len(listed))
		for i, r := range listed {
			resources[i] = resource{backend.Resource{
				Server: l.server.config.Name, URI: r.URI, Name: r.Name, Title: r.Title, MIME: r.MIMEType, Description: r.Description, Size: r.Size,
			}}
		}
		return resources, nil
	})
}

// ReadResource implements [backend.Tools].
func (s *Set) ReadResource(ctx context.Context, server, uri string) ([]backend.Raw, error) {
	m, err := s.find(server)
	if err == errNotFound {
		return nil, &backend.UnknownNameError{Kind: "server named", Name: server}
	}
	if err != nil {
		return nil, err
	}
	return ofServer(ctx, m, func(ctx context.Context, _ member, l *link) ([]backend.Raw, error) {
		r, err := l.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return nil, err
		}
		b := bounded{left: s.options.MaxResult}
		for _, c := range r.Contents {
			if c == nil {
				continue
			}
			raw, err := json.Marshal(c)
			if err != nil {
				continue
			}
			b.addRaw(backend.Encode(struct {
				Type     string      `json:"type"`
				Resource backend.Raw `json:"resource"`
			}{"resource", raw}))
		}
		return b.blocks, nil
	})
}
