package server

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
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

// promptList tracks a client's prompts and the roots they come from. The zero value is empty.
type promptList struct {
	mu    sync.Mutex
	roots string // the URIs of the roots; "" if there were none yet
	// For a modern client, which cannot be asked for its roots when it lists prompts:
	prompts []*mcp.Prompt // from the roots of its last call
	listed  bool          // whether they were listed since
}

// moved reports whether the roots have changed since it was last called.
func (l *promptList) moved(sc *scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.roots
	l.roots = sc.uris()
	return before != "" && before != l.roots
}

// refresh reads the prompts of a scope if they may have changed, and reports whether they have. It
// does nothing if the client has neither changed its roots nor listed its prompts since its
// previous call.
func (l *promptList) refresh(ctx context.Context, sc *scope) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.roots == sc.uris() && !l.listed {
		return false
	}
	prompts, err := sc.prompts(ctx)
	if err != nil {
		return false
	}
	changed = !slices.EqualFunc(l.prompts, prompts,
		func(a, b *mcp.Prompt) bool { return reflect.DeepEqual(a, b) })
	l.roots, l.prompts, l.listed = sc.uris(), prompts, false
	return changed
}

// list returns the prompts of the last refresh.
func (l *promptList) list() []*mcp.Prompt {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed = true
	return append([]*mcp.Prompt{}, l.prompts...)
}

// uris returns the URIs of the roots of a scope, one on each line.
func (sc *scope) uris() string {
	var b strings.Builder
	for _, r := range sc.roots {
		b.WriteString(r.URI + "\n")
	}
	return b.String()
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
		prompts = append(prompts, &mcp.Prompt{
			Name: command.Name, Description: command.Description,
			Arguments: []*mcp.PromptArgument{{Name: promptArgument, Description: command.Hint}},
		})
	}
	return prompts, nil
}

// listPrompts lists the commands and skills of the roots. A modern client cannot be asked for its
// roots here. Over stdio it gets the prompts of its last call's roots, and is notified when they
// change; over HTTP it gets only those of configured and fallback roots.
func (c *client) listPrompts(ctx context.Context, r mcp.Request) (mcp.Result, error) {
	request, ok := r.(*mcp.ServerRequest[*mcp.ListPromptsParams])
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: notShared()}
	if !ok {
		return result, nil
	}
	err := c.withScope(ctx, scoped(request, nil, ""), func(sc *scope) (err error) {
		result.Prompts, err = sc.prompts(ctx)
		return err
	})
	if errors.Is(err, errInputRequired) {
		result.Prompts, err = c.prompts.list(), nil
	}
	if err != nil {
		return nil, protocolError(err)
	}
	return result, nil
}

// getPrompt returns the current text of a command or skill.
func (c *client) getPrompt(ctx context.Context,
	r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, _ := ctx.Value(promptNameKey{}).(string)
	arguments := r.Params.Arguments[promptArgument]
	request := scoped(r, r.Params.InputResponses, r.Params.RequestState,
		"prompts/get", name, arguments)
	request.needsFiles = true
	var result *mcp.GetPromptResult
	err := c.withScope(ctx, request, func(sc *scope) (err error) {
		result, err = sc.prompt(ctx, name, arguments)
		return err
	})
	if errors.Is(err, errInputRequired) {
		result := &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}
		result.InputRequests, result.RequestState = c.server.rootsInput(request)
		return result, nil
	}
	if err != nil {
		return nil, protocolError(err)
	}
	return result, nil
}

// prompt returns a command or skill with its arguments, labelled with the file and root it comes
// from.
func (sc *scope) prompt(ctx context.Context, name, arguments string) (*mcp.GetPromptResult, error) {
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
