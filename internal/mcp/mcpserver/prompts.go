package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

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

// promptList tracks a client's prompts and the roots they come from. The zero value is empty.
type promptList struct {
	mu    sync.Mutex
	roots string // the URIs of the roots; "" if there were none yet
	// What a modern client is shown, which cannot be asked for its roots when it lists prompts:
	prompts []*mcp.Prompt // of the last scan
	known   bool          // whether the client has ever listed them
	listed  bool          // whether it has since the last scan
	scanned time.Time     // when they were last scanned for
}

// moved reports whether the roots have changed since it was last called.
func (l *promptList) moved(sc *scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.roots
	l.roots = sc.uris()
	return before != "" && before != l.roots
}

// refresh reads the prompts of a scope if they may have changed, and reports whether they have.
// While the client stays with its roots, it does so only for one that lists prompts, and no sooner
// than after age.
func (l *promptList) refresh(ctx context.Context, sc *scope, age time.Duration) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	later := l.known && time.Since(l.scanned) >= age
	if l.roots == sc.uris() && !l.listed && !later {
		return false
	}
	prompts, err := sc.prompts(ctx)
	if err != nil {
		return false
	}
	changed = !slices.EqualFunc(l.prompts, prompts,
		func(a, b *mcp.Prompt) bool { return reflect.DeepEqual(a, b) })
	l.roots, l.prompts, l.listed, l.scanned = sc.uris(), prompts, false, time.Now()
	return changed
}

// isListed reports whether the client has listed its prompts.
func (l *promptList) isListed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// note records the prompts that a client was given.
func (l *promptList) note(prompts []*mcp.Prompt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.prompts, l.scanned = true, prompts, time.Now()
}

// checkPrompts tells a client after a call if its prompts have changed. Over HTTP it may not be
// listening.
func (c *client) checkPrompts(ctx context.Context, sc *scope) {
	if !c.onlyDuringCalls && ctx.Err() == nil && c.prompts.refresh(ctx, sc, c.server.limits.promptsAge) {
		c.promptsChanged()
	}
}

// list returns the prompts of the last refresh.
func (l *promptList) list() []*mcp.Prompt {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.listed = true, true
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

// listPrompts lists the commands and skills of the roots. A modern client cannot be asked for its
// roots here. Over stdio it gets the prompts of its last call's roots, and is notified when they
// change; over HTTP it gets only those of configured roots.
func (c *client) listPrompts(ctx context.Context, r mcp.Request) (mcp.Result, error) {
	request, ok := r.(*mcp.ServerRequest[*mcp.ListPromptsParams])
	result := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: notShared()}
	if !ok {
		return result, nil
	}
	err := c.withScope(ctx, scoped(request, nil, ""), func(sc *scope) (err error) {
		result.Prompts, err = sc.prompts(ctx)
		if err == nil {
			c.prompts.note(result.Prompts)
		}
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
	request := scoped(r, r.Params.InputResponses, r.Params.RequestState,
		"prompts/get", name, string(strictjson.Encode(r.Params.Arguments)))
	request.needsFiles = true
	var result *mcp.GetPromptResult
	err := c.withScope(ctx, request, func(sc *scope) (err error) {
		result, err = sc.prompt(ctx, name, r.Params.Arguments)
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
func (sc *scope) prompt(ctx context.Context, name string,
	given map[string]string) (*mcp.GetPromptResult, error) {
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
