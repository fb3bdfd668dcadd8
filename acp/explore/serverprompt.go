package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// ofServer reports whether a name can be that of a prompt of an MCP server: "server.prompt".
func (t *turn) ofServer(name string) bool {
	prefix, _, dotted := strings.Cut(name, ".")
	if !dotted {
		return false
	}
	for _, s := range t.host.Tools().Servers() {
		if s.Prefix == prefix {
			return true
		}
	}
	return false
}

// serverPrompt answers /SERVER.PROMPT: it shows the messages of the prompt, as the server's word.
func (t *turn) serverPrompt(ctx context.Context, name, text string) error {
	prompts, err := t.host.Tools().Prompts(ctx)
	if err != nil {
		return t.unserved(ctx, err)
	}
	t.offers.prompts = prompts
	var p backend.Prompt
	for _, one := range prompts {
		if one.Name == name {
			p = one
		}
	}
	if p.Name == "" {
		return t.unserved(ctx, &backend.UnknownNameError{Kind: "prompt", Name: name})
	}
	arguments, err := promptArguments(p, text)
	if err != nil {
		return t.write(fmt.Sprintf("The prompt %s cannot be had: %v. It is called by %s.\n",
			code(name), err, code(strings.TrimSpace("/"+name+" "+promptHint(p)))))
	}
	messages, err := t.host.Tools().Prompt(ctx, name, arguments)
	if err != nil {
		return t.unserved(ctx, err)
	}
	err = t.write("The prompt " + code(p.Remote) + " of MCP server " + code(p.Server) +
		". This is what the server says, not you. There is no model here to follow it.\n\n")
	for _, m := range messages {
		if err == nil {
			err = t.write("For the " + code(clip(m.Role, 50)) + ":\n\n")
		}
		if err == nil {
			err = t.showBlocks([]backend.Raw{m.Content})
		}
	}
	return err
}

// promptArguments reads what follows a prompt's name: a JSON object of texts, or words in the order of the prompt's
// arguments, of which the last takes what is left.
func promptArguments(p backend.Prompt, text string) (map[string]string, error) {
	given := make(map[string]string)
	if strings.HasPrefix(text, "{") {
		if json.Unmarshal([]byte(text), &given) != nil {
			return nil, errors.New("what follows it is no JSON object of texts")
		}
	} else {
		for i, a := range p.Arguments {
			value := text
			if i < len(p.Arguments)-1 {
				value, text = cutWord(text)
			} else {
				text = ""
			}
			if value != "" {
				given[a.Name] = value
			}
		}
		if text != "" {
			return nil, errors.New("it takes no arguments")
		}
	}
	for _, a := range p.Arguments {
		if _, ok := given[a.Name]; a.Required && !ok {
			return nil, fmt.Errorf("it needs %s", code(a.Name))
		}
	}
	return given, nil
}

// promptHint says what to type after a prompt's name.
func promptHint(p backend.Prompt) string {
	var words []string
	for _, a := range p.Arguments {
		word := printable(strings.Join(strings.Fields(a.Name), "-"))
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return clip(strings.Join(words, " "), longestSaid)
}
