package explore

import (
	"context"
	"fmt"
	"strings"
)

// command is something that a prompt can ask for.
type command struct {
	name string
	// input is what follows the name, "" for nothing.
	input       string
	description string
	run         func(*turn, context.Context, prompt) error
}

// commands lists them in the order in which they are announced.
func commands() []command {
	return []command{
		{"roots", "", "Show the session's roots and MCP servers, and the state of each", (*turn).showRoots},
		{"find", "GLOB", "Find files by name in every root", (*turn).find},
		{"search", "REGEXP", "Search every root for lines that match a regular expression", (*turn).search},
		{"read", "PATH[:FIRST-LAST]", "Read a file, or some of its lines", (*turn).read},
		{"write", "PATH", "Write a file, whose content is on the lines below; asks first", (*turn).writeFile},
		{"edit", "PATH", "Replace lines of a file, given on the lines below; asks first", (*turn).editFile},
		{"help", "", "Show what can be asked", (*turn).help},
	}
}

// turn answers one prompt.
type turn struct {
	*session
	*reply
}

func (t *turn) answer(ctx context.Context, p prompt) error {
	if err := t.write(p.notes()); err != nil {
		return err
	}
	err := t.dispatch(ctx, p)
	if err != nil {
		return err
	}
	return t.flush()
}

func (t *turn) dispatch(ctx context.Context, p prompt) error {
	switch {
	case p.command != "":
		for _, c := range commands() {
			if c.name == p.command {
				return c.run(t, ctx, p)
			}
		}
		return t.write(fmt.Sprintf("There is no command %s.\n\n%s", code("/"+p.command), helpText()))
	case p.text != "":
		return t.searchWords(ctx, p)
	case len(p.links) > 0:
		return t.read(ctx, p)
	default:
		return t.help(ctx, p)
	}
}

func (t *turn) help(context.Context, prompt) error { return t.write(helpText()) }

func helpText() string {
	var b strings.Builder
	b.WriteString("This is what can be asked:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- %s: %s\n", code(c.usage()), c.description)
	}
	b.WriteString("\nAny other text is searched for as words, in all roots.\n")
	b.WriteString("\nAn edit looks like this. The old lines must be in the file exactly once:\n\n" + editForm)
	return b.String()
}

func (c command) usage() string { return strings.TrimSpace("/" + c.name + " " + c.input) }

func announcement() availableCommands {
	a := availableCommands{Kind: "available_commands_update"}
	for _, c := range commands() {
		one := availableCommand{Name: c.name, Description: c.description}
		if c.input != "" {
			one.Input = &commandInput{Hint: c.input}
		}
		a.Commands = append(a.Commands, one)
	}
	return a
}
