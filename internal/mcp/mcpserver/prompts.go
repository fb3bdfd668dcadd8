package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const (
	// anyPrompt is the only prompt that is registered with the SDK, because the actual prompts
	// depend on the roots.
	anyPrompt = "discovered"
	// promptArgument holds what the user types after a command.
	promptArgument = "arguments"
	// maxPrompts is the most prompts that are listed.
	maxPrompts = 1000
)

type promptNameKey struct{}

// withPromptName moves the name of a prompts/get into the context for getPrompt, because the SDK
// only knows anyPrompt.
func withPromptName(ctx context.Context, r mcp.Request) context.Context {
	params, ok := r.GetParams().(*mcp.GetPromptParams)
	if !ok || params == nil {
		return ctx
	}
	ctx = context.WithValue(ctx, promptNameKey{}, params.Name)
	params.Name = anyPrompt
	return ctx
}

// prompts returns the commands and skills of a scope.
func (sc *scope) prompts(ctx context.Context) ([]*mcp.Prompt, error) {
	prompts := []*mcp.Prompt{}
	catalog, err := sc.catalog(ctx)
	if err != nil || catalog == nil {
		return prompts, err
	}
	commands, _ := catalog.SlashCommands()
	for _, command := range commands[:min(len(commands), maxPrompts)] {
		p := &mcp.Prompt{Name: command.Name, Description: command.Description}
		for _, name := range command.Artifact.ArgumentNames() {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: name})
		}
		if p.Arguments == nil {
			p.Arguments = []*mcp.PromptArgument{{Name: promptArgument, Description: command.Hint}}
		}
		prompts = append(prompts, p)
	}
	return prompts, nil
}

// promptsChanged tells the client that its prompts have changed, if it is served any.
func (c *client) promptsChanged() {
	if c.server.options.Only == nil {
		// The SDK notifies the client.
		c.sdk.AddPrompt(&mcp.Prompt{Name: anyPrompt}, c.getPrompt)
	}
}

// listPrompts lists the commands and skills of the roots. A modern client cannot be asked for its
// roots here. Over stdio it gets the prompts of its last call's roots, and is notified when they
// change; over HTTP it gets only those of configured roots.
func (c *client) listPrompts(ctx context.Context, r mcp.Request) (mcp.Result, error) {
	request, ok := r.(*mcp.ServerRequest[*mcp.ListPromptsParams])
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: notShared()}
	if !ok {
		return result, nil
	}
	read := func(sc *scope) (err error) {
		result.Prompts, err = sc.prompts(ctx)
		return err
	}
	err := c.withScope(ctx, scopedRequest{versioned: request}, read)
	if errors.Is(err, errInputRequired) {
		var sc *scope
		if sc, err = c.server.openList(ctx, c.listed.Load()); err == nil {
			defer sc.close()
			err = read(sc)
		}
	}
	return result, protocolError(err)
}

// getPrompt returns the current text of a command or skill.
func (c *client) getPrompt(
	ctx context.Context, r *mcp.GetPromptRequest,
) (*mcp.GetPromptResult, error) {
	name, _ := ctx.Value(promptNameKey{}).(string)
	identity := []string{"prompts/get", name, string(strictjson.Encode(r.Params.Arguments))}
	request := scopedRequest{r, r.Params.InputResponses, r.Params.RequestState, identity, true}
	get := func(sc *scope) (*mcp.GetPromptResult, error) {
		return sc.prompt(ctx, name, r.Params.Arguments)
	}
	result, err := inScope(ctx, c, request, get,
		func(requests mcp.InputRequestMap, state string) *mcp.GetPromptResult {
			return &mcp.GetPromptResult{InputRequests: requests, RequestState: state,
				Messages: []*mcp.PromptMessage{}}
		})
	return result, protocolError(err)
}

// typedArguments returns the arguments of a prompt as a user would type them.
func typedArguments(names []string, given map[string]string) string {
	if typed, ok := given[promptArgument]; ok && !slices.Contains(names, promptArgument) {
		return typed
	}
	words, last := make([]string, len(names)), 0
	for i, name := range names {
		value, ok := given[name]
		if words[i] = value; ok {
			last = i + 1
		}
	}
	return text.JoinWords(words[:last])
}

// prompt returns a command or skill with its arguments, labelled with the file and root it comes
// from.
func (sc *scope) prompt(
	ctx context.Context, name string, given map[string]string,
) (*mcp.GetPromptResult, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil {
		return nil, err
	}
	var commands []discovery.SlashCommand
	if catalog != nil {
		commands, _ = catalog.SlashCommands()
	}
	at := slices.IndexFunc(commands, func(c discovery.SlashCommand) bool { return c.Name == name })
	if at < 0 {
		message := fmt.Sprintf("there is no prompt %q: prompts/list lists them",
			text.Truncate(name, maxQuoted))
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
	}
	file := commands[at].Artifact
	arguments := typedArguments(file.ArgumentNames(), given)
	content, err := catalog.Expand(ctx, file, arguments)
	if err != nil {
		return nil, err
	}
	message := fmt.Sprintf("From the file %s in the folder %s, for /%s:\n\n%s",
		text.Printable(file.Path), text.Printable(file.Root.Dir.String()), name, content)
	if arguments != "" && !content.TakesArguments {
		message += "\n\nArguments: " + arguments
	}
	if note := content.Note(); note != "" {
		message += "\n\n" + note
	}
	return &mcp.GetPromptResult{
		Description: commands[at].Description,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: message}}},
	}, nil
}
