package mcpclient

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
)

// prompt is a prompt of a server. Its name is unique in the set: "server:prompt", of letters,
// digits, "_", "-" and that one colon.
type prompt struct {
	acpmcp.Prompt
	definition *mcp.Prompt // must not be modified
}

// listPrompts returns the server's prompts.
func (c *connection) listPrompts(ctx context.Context) ([]prompt, error) {
	if c.offered().Prompts == nil {
		return nil, nil
	}
	name := func(p *mcp.Prompt) string { return p.Name }
	named := func(p *mcp.Prompt, unique string) prompt {
		return prompt{acpmcp.Prompt{Name: c.server.prefix + ":" + unique,
			Description: p.Description, Hint: argumentsHint(p)}, p}
	}
	return fetchList(c.server, &c.prompts, c.session.Prompts(ctx, nil), name, named)
}

// GetPrompt gets the prompt called name, starting its server if necessary. arguments are what the
// user typed after the name: NAME=VALUE for each, or the values in order. The error is a
// [*acpmcp.UnknownNameError] if such a prompt does not exist.
func (s *Set) GetPrompt(ctx context.Context, name, arguments string) (*mcp.GetPromptResult, error) {
	notFound := &acpmcp.UnknownNameError{Kind: "prompt", Name: name}
	server, rest, _ := strings.Cut(name, ":")
	one, err := s.find(server, notFound)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, c *connection) (*mcp.GetPromptResult, error) {
		prompts, err := c.listPrompts(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(prompts, func(p prompt) bool {
			return p.Name == c.server.prefix+":"+rest || p.definition.Name == rest
		})
		if i < 0 {
			return nil, notFound
		}
		given, err := promptArguments(prompts[i].definition, arguments)
		if err != nil {
			return nil, err
		}
		params := &mcp.GetPromptParams{Name: prompts[i].definition.Name, Arguments: given}
		return c.session.GetPrompt(ctx, params)
	}
	return fromServer(ctx, one, get)
}

// argumentsHint names the arguments of a prompt. Optional ones are in brackets.
func argumentsHint(p *mcp.Prompt) string {
	const maxHint = 300
	var names []string
	for _, a := range p.Arguments {
		switch {
		case a == nil:
		case a.Required:
			names = append(names, text.Name(a.Name))
		default:
			names = append(names, "["+text.Name(a.Name)+"]")
		}
	}
	return text.Truncate(strings.Join(names, " "), maxHint)
}

// namedArgument matches NAME=VALUE at the beginning of a text. The value may be in double quotes.
var namedArgument = text.Pattern(`^\s*([^\s="]+)=("[^"]*"|\S*)(\s|$)`)

// promptArguments parses the arguments of a prompt from the text that the user typed: NAME=VALUE
// for each, or the values in order, where the last value is the rest of the text.
func promptArguments(p *mcp.Prompt, typed string) (map[string]string, error) {
	declared := slices.DeleteFunc(slices.Clone(p.Arguments),
		func(a *mcp.PromptArgument) bool { return a == nil })
	given, ok := namedArguments(declared, typed)
	if !ok {
		given = map[string]string{}
		for i, a := range declared {
			value := strings.TrimSpace(typed)
			if i < len(declared)-1 {
				value, typed = text.CutWord(value)
			}
			if value != "" {
				given[a.Name] = value
			}
		}
	}
	for _, a := range declared {
		if a.Required && given[a.Name] == "" {
			return nil, fmt.Errorf("the prompt needs the argument %s: type its arguments after "+
				"its name, %s", text.Quote(a.Name), argumentsHint(p))
		}
	}
	if len(declared) == 0 && strings.TrimSpace(typed) != "" {
		return nil, fmt.Errorf("the prompt takes no arguments")
	}
	return given, nil
}

// namedArguments returns the arguments that are typed as NAME=VALUE. ok is false if something else
// is typed.
func namedArguments(
	declared []*mcp.PromptArgument, typed string,
) (given map[string]string, ok bool) {
	given = map[string]string{}
	for strings.TrimSpace(typed) != "" {
		m := namedArgument().FindStringSubmatch(typed)
		if m == nil || !slices.ContainsFunc(declared,
			func(a *mcp.PromptArgument) bool { return a.Name == m[1] }) {
			return nil, false
		}
		given[m[1]] = strings.Trim(m[2], `"`)
		typed = typed[len(m[0]):]
	}
	return given, true
}
