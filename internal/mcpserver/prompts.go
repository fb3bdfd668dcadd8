package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// anyPrompt is the only prompt that the SDK knows. Which prompts exist depends on the roots, and is not known before them.
	anyPrompt = "discovered"
	// promptArgument holds what the user types after a command.
	promptArgument = "arguments"
	// maxPrompts is the most prompts that are listed.
	maxPrompts = 1000
)

type promptNameKey struct{}

// withPromptName moves the name of a prompts/get into the context for getPrompt, because the SDK only knows anyPrompt.
func withPromptName(ctx context.Context, r mcp.Request) context.Context {
	params, ok := r.GetParams().(*mcp.GetPromptParams)
	if !ok || params == nil {
		return ctx
	}
	ctx = context.WithValue(ctx, promptNameKey{}, params.Name)
	params.Name = anyPrompt
	return ctx
}

// listPrompts lists the commands and skills of the roots. A modern client cannot be asked for its roots here, so it only gets those
// of the configured and fallback roots.
func (c *client) listPrompts(ctx context.Context, r mcp.Request) (mcp.Result, error) {
	request, ok := r.(*mcp.ServerRequest[*mcp.ListPromptsParams])
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: notShared()}
	if !ok {
		return result, nil
	}
	scoped := scopedRequest{revision: request.ProtocolVersion(), capabilities: request.ClientCapabilities()}
	err := c.withScope(ctx, scoped, func(sc *scope) error {
		catalog, err := sc.catalog(ctx)
		if err != nil || catalog == nil {
			return err
		}
		commands, _ := catalog.SlashCommands()
		for _, command := range commands[:min(len(commands), maxPrompts)] {
			result.Prompts = append(result.Prompts, &mcp.Prompt{
				Name: command.Name, Description: command.Description,
				Arguments: []*mcp.PromptArgument{{Name: promptArgument, Description: command.Hint}},
			})
		}
		return nil
	})
	if err != nil && !errors.Is(err, errInputRequired) {
		return nil, protocolError(err)
	}
	return result, nil
}

// getPrompt returns the current text of a command or skill.
func (c *client) getPrompt(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, _ := ctx.Value(promptNameKey{}).(string)
	arguments := r.Params.Arguments[promptArgument]
	scoped := scopedRequest{
		revision: r.ProtocolVersion(), capabilities: r.ClientCapabilities(), responses: r.Params.InputResponses, state: r.Params.RequestState,
		identity: [][]byte{[]byte("prompts/get"), []byte(name), []byte(arguments)}, needsFiles: true,
	}
	var result *mcp.GetPromptResult
	err := c.withScope(ctx, scoped, func(sc *scope) (err error) {
		result, err = sc.prompt(ctx, name, arguments)
		return err
	})
	if errors.Is(err, errInputRequired) {
		result := &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}
		result.InputRequests, result.RequestState = c.server.rootsInput(scoped)
		return result, nil
	}
	if err != nil {
		return nil, protocolError(err)
	}
	return result, nil
}

// prompt returns a command or skill with its arguments, labelled with the file and root it comes from.
func (sc *scope) prompt(ctx context.Context, name, arguments string) (*mcp.GetPromptResult, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil {
		return nil, err
	}
	if catalog != nil {
		commands, _ := catalog.SlashCommands()
		for _, command := range commands {
			if command.Name != name {
				continue
			}
			content, err := catalog.Expand(ctx, command.Artifact, arguments)
			if err != nil {
				return nil, err
			}
			message := fmt.Sprintf("From the file %s in the folder %s, for /%s:\n\n%s",
				text.Printable(command.Artifact.Path), text.Printable(command.Artifact.Root.Dir.String()), name, content)
			if arguments != "" && !content.TakesArguments {
				message += "\n\nArguments: " + arguments
			}
			if note := content.Note(); note != "" {
				message += "\n\n" + note
			}
			return &mcp.GetPromptResult{
				Description: command.Description,
				Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: message}}},
			}, nil
		}
	}
	return nil, &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no prompt %q: prompts/list lists them", text.Truncate(name, maxQuoted)),
	}
}
