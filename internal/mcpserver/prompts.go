package mcpserver

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are followed for the clients that there are

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// anyPrompt is the one prompt that the SDK knows of. Which there are depends on the roots, and is not known
	// before those are.
	anyPrompt = "discovered"
	// promptArgument is what is typed behind a command.
	promptArgument = "arguments"
	// maxPrompts is the most prompts that are listed.
	maxPrompts = 1000
)

type promptKey struct{}

// promptNamed takes the name out of a prompts/get, for getPrompt.
func promptNamed(ctx context.Context, r mcp.Request) context.Context {
	params, ok := r.GetParams().(*mcp.GetPromptParams)
	if !ok || params == nil {
		return ctx
	}
	ctx = context.WithValue(ctx, promptKey{}, params.Name)
	params.Name = anyPrompt
	return ctx
}

// listPrompts lists the commands and skills that are found in the roots. A client that is asked within results cannot be
// asked here: it gets those of the roots that the server was started with.
func (c *client) listPrompts(ctx context.Context, r mcp.Request) (mcp.Result, error) {
	request, ok := r.(*mcp.ServerRequest[*mcp.ListPromptsParams])
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: private()}
	if !ok {
		return result, nil
	}
	err := c.within(ctx, asker{revision: request.ProtocolVersion(), capabilities: request.ClientCapabilities()}, anything, func(sc *scope) error {
		catalog, err := sc.catalog(ctx)
		if err != nil || catalog == nil {
			return err
		}
		offered, _ := catalog.SlashCommands()
		for _, command := range offered[:min(len(offered), maxPrompts)] {
			result.Prompts = append(result.Prompts, declaredPrompt(command))
		}
		return nil
	})
	if errors.Is(err, errQuestion) {
		err = nil
	}
	if err != nil {
		return nil, internal(err)
	}
	return result, nil
}

func declaredPrompt(command discovery.SlashCommand) *mcp.Prompt {
	return &mcp.Prompt{
		Name: command.Name, Description: command.Description,
		Arguments: []*mcp.PromptArgument{{Name: promptArgument, Description: command.Hint}},
	}
}

// getPrompt gives the text of a command or skill, as the file is now.
func (c *client) getPrompt(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, _ := ctx.Value(promptKey{}).(string)
	a := asker{
		revision: r.ProtocolVersion(), capabilities: r.ClientCapabilities(), responses: r.Params.InputResponses,
		state: r.Params.RequestState, parts: [][]byte{[]byte("prompts/get"), []byte(name), []byte(r.Params.Arguments[promptArgument])},
	}
	var result *mcp.GetPromptResult
	err := c.within(ctx, a, files, func(sc *scope) (err error) {
		result, err = sc.prompt(ctx, name, r.Params.Arguments[promptArgument])
		return err
	})
	if errors.Is(err, errQuestion) {
		return &mcp.GetPromptResult{
			Messages: []*mcp.PromptMessage{}, InputRequests: mcp.InputRequestMap{rootsKey: &mcp.ListRootsParams{}},
			RequestState: c.server.seal.of(a.parts...),
		}, nil
	}
	if err != nil {
		return nil, internal(err)
	}
	return result, nil
}

// prompt is a discovered command with its arguments. It is labelled with where it is from (A30).
func (sc *scope) prompt(ctx context.Context, name, arguments string) (*mcp.GetPromptResult, error) {
	catalog, err := sc.catalog(ctx)
	if err != nil {
		return nil, err
	}
	if catalog != nil {
		offered, _ := catalog.SlashCommands()
		for _, command := range offered {
			if command.Name != name {
				continue
			}
			content, err := catalog.Text(ctx, command.Artifact)
			if err != nil {
				return nil, err
			}
			message := fmt.Sprintf("The file %s in the folder %s says for /%s:\n\n%s",
				text.Printable(command.Artifact.Path), text.Printable(command.Artifact.Root.Dir.String()), name, content)
			if arguments != "" {
				message += "\n\nWhat was typed behind it: " + arguments
			}
			return &mcp.GetPromptResult{
				Description: command.Description,
				Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: message}}},
			}, nil
		}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no prompt %q: prompts/list lists those of the roots", shorten(name))}
}
