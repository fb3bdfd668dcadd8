package servers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	mcpclient "github.com/acp-agent/acp-agent/internal/mcp/client"
	"github.com/acp-agent/acp-agent/internal/text"
)

// describePrompts returns prompts for the backend.
func describePrompts(prompts []mcpclient.Prompt) []backend.Prompt {
	var all []backend.Prompt
	for _, p := range prompts {
		all = append(all, backend.Prompt{
			Name: p.Name, Description: p.Definition.Description, Hint: argumentsHint(p.Definition),
		})
	}
	return all
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

// Prompt implements [backend.Tools].
func (s *Set) Prompt(ctx context.Context, name, arguments string) (backend.ToolResult, error) {
	r, err := s.client.GetPrompt(ctx, name, func(p *mcp.Prompt) (map[string]string, error) {
		return promptArguments(p, arguments)
	})
	if err != nil {
		return backend.ToolResult{}, border(err)
	}
	content := newBoundedContent(s.maxResult)
	for _, m := range r.Messages {
		if m == nil || m.Content == nil {
			continue
		}
		if m.Role != "user" {
			content.add(sdk.TextBlock("[What follows is an example of an answer.]"))
		}
		content.add(m.Content)
	}
	return backend.ToolResult{Content: content.blocks, Cut: content.describeCut()}, nil
}

// namedArgument matches NAME=VALUE at the beginning of a text. The value may be in double quotes.
var namedArgument = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([^\s="]+)=("[^"]*"|\S*)(\s|$)`)
})

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
