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
		{"instructions", "[PATH]", "Show the instructions that the roots hold, with a path also those on the way to it", (*turn).instructions},
		{"skills", "", "Show the skills that the roots hold, and the state of each", (*turn).skills},
		{"skill", "NAME [ARGUMENTS]", "Show what a skill says", (*turn).skill},
		{"commands", "", "Show the commands that the roots hold, and the state of each", (*turn).foundCommands},
		{"mcp", "[tools | start NAME]", "Show the MCP servers; show what they offer; start one that a root names, asks first", (*turn).mcp},
		{"call", "SERVER.TOOL [JSON]", "Call a tool of an MCP server; asks first", (*turn).call},
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
	if err := t.announceCommands(ctx); err != nil {
		return err
	}
	if err := t.dispatch(ctx, p); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.announceCommands(ctx) // a server that was used may have prompts
}

func (t *turn) dispatch(ctx context.Context, p prompt) error {
	switch {
	case p.command != "":
		return t.command(ctx, p)
	case p.text != "":
		return t.searchWords(ctx, p)
	case len(p.links) > 0:
		return t.read(ctx, p)
	default:
		return t.help(ctx, p)
	}
}

// command runs a command: one of our own, else one that the roots hold, else a prompt of an MCP server.
func (t *turn) command(ctx context.Context, p prompt) error {
	for _, c := range commands() {
		if c.name == p.command {
			return c.run(t, ctx, p)
		}
	}
	offered, _ := t.host.Catalog().SlashCommands(reserved()...)
	for _, c := range offered {
		if c.Name == p.command {
			return t.showFound(ctx, c.Artifact, p.text)
		}
	}
	if t.ofServer(p.command) {
		return t.serverPrompt(ctx, p.command, p.text)
	}
	return t.write(fmt.Sprintf("There is no command %s.\n\n%s", code("/"+p.command), helpText()))
}

func (t *turn) help(context.Context, prompt) error { return t.write(helpText()) }

func helpText() string {
	var b strings.Builder
	b.WriteString("This is what can be asked:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- %s: %s\n", code(c.usage()), c.description)
	}
	b.WriteString("\nThe names of skills and commands that the roots hold are commands too, and so are prompts of MCP servers, as " +
		code("/SERVER.PROMPT") + ".\n")
	b.WriteString("\nAny other text is searched for as words, in all roots.\n")
	b.WriteString("\nAn edit looks like this. The old lines must be in the file exactly once:\n\n" + editForm)
	return b.String()
}

func (c command) usage() string { return strings.TrimSpace("/" + c.name + " " + c.input) }
