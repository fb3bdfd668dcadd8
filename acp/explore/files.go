package explore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// find answers /find.
func (t *commandTurn) find(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.Refuse("Give a glob: " + text.Code("/find GLOB") + ", for example " +
			text.Code("/find **/*.go") + ".\n")
	}
	return t.useTool(ctx, "find_files", "Find "+text.Argument(p.text),
		map[string]any{"glob": p.text})
}

// search answers /search.
func (t *commandTurn) search(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.Refuse("Give a regular expression: " + text.Code("/search REGEXP") +
			", for example " + text.Code("/search func New") + ".\n")
	}
	return t.useTool(ctx, "search", "Search for "+text.Argument(p.text),
		map[string]any{"pattern": p.text})
}

// searchWords answers a prompt that is not a command. It finds the lines with all of its words, in
// the order of the prompt and in any case.
func (t *commandTurn) searchWords(ctx context.Context, p prompt) error {
	const longest = 1000 // bytes
	words := strings.Fields(text.Prefix(p.text, longest))
	if len(words) == 0 { // only spaces of other kinds
		return t.help(ctx, p)
	}
	if len(p.text) > longest {
		note := fmt.Sprintf("Only the first %s are searched for.\n\n", text.Size(longest))
		t.Write(note)
	}
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return t.useTool(ctx, "search", "Search for "+text.Argument(p.text),
		map[string]any{"pattern": strings.Join(words, ".*"), "ignore_case": true})
}

// read answers /read, and a prompt that consists of links.
func (t *commandTurn) read(ctx context.Context, p prompt) error {
	wanted := p.links
	if p.text != "" {
		wanted = append([]link{t.readArgument(p.text)}, wanted...)
	}
	if len(wanted) == 0 {
		return t.Refuse("Give a path: " + text.Code("/read PATH[:FIRST-LAST]") + ", for example " +
			text.Code("/read main.go:1-20") + ".\n")
	}
	for _, l := range wanted {
		if err := t.useTool(ctx, "read_file", l.title(), l.arguments()); err != nil {
			return err
		}
	}
	return nil
}

// readArgument parses the argument of /read. A file whose name ends like a range of lines takes
// precedence.
func (t *commandTurn) readArgument(argument string) link {
	l, ok := splitLines(argument)
	if !ok {
		return l
	}
	if _, err := t.host.Workspace().Stat(argument); err == nil {
		return link{path: argument}
	}
	return l
}

// useTool calls a tool that reads files, and shows its result.
func (t *commandTurn) useTool(
	ctx context.Context, name, title string, arguments map[string]any,
) error {
	all, raw := tools.New(t.host.Workspace(), tools.Options{}).Tools(), backend.Encode(arguments)
	tool := all[slices.IndexFunc(all, func(each tools.Tool) bool { return each.Name == name })]
	call, err := t.Begin(sdk.ToolKind(tool.Kind), title, arguments)
	if err != nil {
		return err
	}
	check := func(ctx context.Context, a workspace.Access, before error) error {
		rule, asks := permission.Asks(before)
		if !asks {
			return before
		}
		shown := backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{ToolCallId: call.ID,
			Title: sdk.Ptr("Read " + text.Argument(a.At.Path())), Kind: sdk.Ptr(sdk.ToolKindRead),
			Locations: backend.Locations(a.At.Path(), 0)}}
		_, err := t.host.Ask(ctx, backend.Question{Call: shown, Once: "Allow", Reject: "Reject",
			Action: rule.Action})
		return err
	}
	result, err := tool.Call(ctx, raw, tools.Caller{Check: check})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, workspace.ErrClosed):
		return err
	case err != nil:
		return t.Fail(call, text.Plain(err.Error())+".")
	}
	var places []sdk.ToolCallLocation
	for _, p := range tool.Places(t.host.Workspace(), raw) {
		places = append(places, backend.Locations(p.Ref.Path(), p.Line)...)
	}
	for _, f := range result.Found {
		places = append(places, backend.Locations(f.Path, f.Line)...)
	}
	err = call.Show(ctx, backend.ToolCall{ToolCallUpdate: sdk.ToolCallUpdate{
		Status: sdk.Ptr(sdk.ToolCallStatusCompleted), Locations: places}})
	if err != nil {
		return err
	}
	if tool.Kind == tools.KindSearch && len(result.Found) == 0 {
		none, notes, _ := strings.Cut(result.Text, "\n")
		if err := t.Write(none + ".\n\n"); err != nil || notes == "" {
			return err
		}
		return t.Quote(notes)
	}
	said := result.Text + t.mentions.Lines(ctx, t.host.Workspace(), tools.Paths(raw)...)
	return t.Quote(t.labelled(said))
}

// labelled returns the result of a tool with the labels of the roots in place of their paths, where
// the result names files.
func (t *commandTurn) labelled(result string) string {
	lines := strings.Split(result, "\n")
	for i, line := range lines {
		for _, r := range t.roots {
			in := fmt.Sprintf(" (folder %s)", text.Printable(r.Dir.String()))
			path, rest, found := strings.Cut(line, in)
			if found && strings.HasPrefix(path, text.Printable(r.Dir.String())) {
				lines[i] = r.ShowPath(path) + rest
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}
