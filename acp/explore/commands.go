package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

// command is a built-in slash command.
type command struct {
	name        string
	input       string // what follows the name, "" for nothing
	description string
	run         func(*commandTurn, context.Context, prompt) error
}

func (c command) usage() string { return strings.TrimSpace("/" + c.name + " " + c.input) }

// builtins returns the built-in commands in the order in which they are announced.
func builtins() []command {
	return []command{
		{"find", "GLOB", "Find files by name in all folders", (*commandTurn).find},
		{"search", "REGEXP", "Search all folders for lines that match a regular expression",
			(*commandTurn).search},
		{"read", "PATH[:FIRST-LAST]", "Read a file or some of its lines", (*commandTurn).read},
		{"instructions", "[PATH]", "Show the instructions found in the folders, or those that " +
			"apply to a path", (*commandTurn).instructions},
		{"skills", "", "List the skills found in the folders, with their state",
			func(t *commandTurn, _ context.Context, _ prompt) error {
				return t.listArtifacts(discovery.Skill)
			}},
		{"commands", "", "List the commands found in the folders, with their state",
			func(t *commandTurn, _ context.Context, _ prompt) error {
				return t.listArtifacts(discovery.Command)
			}},
		{"call", "SERVER.TOOL [JSON]", "Call a tool of an MCP server; asks first",
			(*commandTurn).call},
		{"help", "", "Show this list", (*commandTurn).help},
	}
}

// commandTurn answers one prompt.
type commandTurn struct {
	*explorerSession
	*commands.Reply
}

// servers returns what writes about MCP servers.
func (t *commandTurn) servers() commands.MCP {
	return commands.MCP{Reply: t.Reply, Name: backend.MCPCommand,
		Host: func() backend.Host { return t.host }}
}

func (t *commandTurn) answer(ctx context.Context, p prompt) error {
	t.Write(p.notes())
	if err := t.announceCommands(ctx, t.Updates); err != nil {
		return err
	}
	if err := t.dispatch(ctx, p); err != nil {
		return err
	}
	return t.announceCommands(ctx, t.Updates) // with prompts that are known now
}

func (t *commandTurn) dispatch(ctx context.Context, p prompt) error {
	switch {
	case p.command != "":
		return t.runCommand(ctx, p)
	case p.text != "":
		return t.searchWords(ctx, p)
	case len(p.links) > 0:
		return t.read(ctx, p)
	default:
		return t.help(ctx, p)
	}
}

// runCommand runs a built-in command, or shows a skill or command found in the roots.
func (t *commandTurn) runCommand(ctx context.Context, p prompt) error {
	for _, c := range builtins() {
		if c.name == p.command {
			return c.run(t, ctx, p)
		}
	}
	offered, _ := t.host.Catalog().SlashCommands(backend.OwnCommands(Kind)...)
	for _, c := range offered {
		if c.Name == p.command {
			return t.showArtifact(ctx, c.Artifact, p.text)
		}
	}
	for _, kind := range []discovery.Kind{discovery.Skill, discovery.Command} {
		if named := t.host.Catalog().Named(kind, p.command); len(named) > 0 {
			return t.explainUnusable(named[0])
		}
	}
	if strings.Contains(p.command, ":") {
		return t.servers().Prompt(ctx, p.command, p.text)
	}
	return t.Refuse(fmt.Sprintf("There is no command %s.\n\n%s", text.Code("/"+p.command),
		helpText()))
}

// help answers /help.
func (t *commandTurn) help(context.Context, prompt) error { return t.Write(helpText()) }

func helpText() string {
	var b strings.Builder
	b.WriteString("You can use these commands:\n\n")
	all := builtins()
	for _, name := range []string{backend.RootsCommand, backend.MCPCommand} {
		adapters := backend.AdapterCommand(name)
		all = append(all, command{name, adapters.Input.Unstructured.Hint, adapters.Description, nil})
	}
	for _, c := range all {
		fmt.Fprintf(&b, "- %s: %s\n", text.Code(c.usage()), c.description)
	}
	b.WriteString("\nSkills and commands found in the folders are commands too.\n")
	b.WriteString(
		"\nAny other text finds the lines in all folders that contain all of its words.\n")
	return b.String()
}

// announceCommands sends the list of slash commands if it has changed since it was last sent.
func (s *explorerSession) announceCommands(ctx context.Context, to backend.Updates) error {
	var own []sdk.AvailableCommand
	for _, c := range builtins() {
		own = append(own, backend.NewCommand(c.name, c.description, c.input))
	}
	return s.announced.Announce(ctx, s.host, to, own, maxCommands)
}

// call answers /call. The host shows the call to the user and asks for permission.
func (t *commandTurn) call(ctx context.Context, p prompt) error {
	name, arguments := text.CutWord(p.text)
	if !strings.Contains(name, ".") {
		return t.Refuse("Give the name of a tool: " + text.Code("/call SERVER.TOOL [JSON]") +
			", for example " +
			text.Code(`/call files.read {"path": "a.txt"}`) + ". " + text.Code("/mcp tools") +
			" lists them.\n")
	}
	if arguments != "" && !json.Valid([]byte(arguments)) {
		return t.Refuse("The arguments of " + text.Code(name) + " are not valid JSON: " +
			text.Code(text.Truncate(arguments, 200)) + ".\n")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	result, err := t.host.Tools().Call(ctx, t.Updates,
		backend.ToolRequest{Name: name, Arguments: backend.Raw(arguments)})
	if err != nil {
		return t.servers().WriteError(ctx, err)
	}
	intro := "The tool " + text.Code(name) + " returned"
	if result.Failed {
		intro = "The tool " + text.Code(name) + " reports an error"
	}
	return t.ShowResult(intro, result)
}
