package explore

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

// command is a built-in slash command.
type command struct {
	name        string
	input       string // what follows the name, "" for nothing
	description string
	run         func(*turn, context.Context, prompt) error
}

func (c command) usage() string { return strings.TrimSpace("/" + c.name + " " + c.input) }

// commands returns the built-in commands in the order in which they are announced.
func commands() []command {
	return []command{
		{"find", "GLOB", "Find files by name in all folders", (*turn).find},
		{"search", "REGEXP", "Search all folders for lines that match a regular expression",
			(*turn).search},
		{"read", "PATH[:FIRST-LAST]", "Read a file or some of its lines", (*turn).read},
		{"write", "PATH", "Write a file with the content on the lines below; asks first",
			(*turn).writeFile},
		{"edit", "PATH", "Replace a text in a file, both given on the lines below; asks first",
			(*turn).editFile},
		{"instructions", "[PATH]", "Show the instructions found in the folders, or those that " +
			"apply to a path", (*turn).instructions},
		{"skills", "", "List the skills found in the folders, with their state",
			(*turn).listSkills},
		{"skill", "NAME [ARGUMENTS]", "Show a skill", (*turn).skill},
		{"commands", "", "List the commands found in the folders, with their state",
			(*turn).listCommands},
		mcpCommand(),
		{"call", "SERVER.TOOL [JSON]", "Call a tool of an MCP server; asks first", (*turn).call},
		{"help", "", "Show this list", (*turn).help},
	}
}

func mcpCommand() command {
	return command{backend.MCPCommand, "[tools | start NAME | read SERVER URI]",
		"List the MCP servers, list what they offer, start one configured in a folder (asks " +
			"first), or read a resource", (*turn).mcp}
}

// announced returns the command as it is announced.
func (c command) announced() sdk.AvailableCommand {
	return backend.NewCommand(c.name, c.description, c.input)
}

// MCPCommand returns /mcp as it is announced.
func MCPCommand() sdk.AvailableCommand { return mcpCommand().announced() }

// builtinNames returns the names of the built-in commands and of the adapter's, which are reserved.
func builtinNames() []string {
	names := backend.AdapterCommands()
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
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
	if err := t.announceCommands(ctx, t.updates); err != nil {
		return err
	}
	if err := t.dispatch(ctx, p); err != nil {
		return err
	}
	return t.announceCommands(ctx, t.updates) // with prompts that are known now
}

func (t *turn) dispatch(ctx context.Context, p prompt) error {
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
func (t *turn) runCommand(ctx context.Context, p prompt) error {
	offered, taken := t.host.Catalog().SlashCommands(builtinNames()...)
	for _, c := range commands() {
		if c.name != p.command {
			continue
		}
		for _, lost := range taken {
			if lost.Name == p.command && !t.mentioned[lost.Artifact.Path] {
				t.mentioned[lost.Artifact.Path] = true
				note := fmt.Sprintf("Not used, because %s is a built-in command: %s.\n\n",
					text.Code("/"+c.name),
					text.Code(t.roots[lost.Artifact.Root.Index].showPath(lost.Artifact.Path)))
				if err := t.write(note); err != nil {
					return err
				}
			}
		}
		return c.run(t, ctx, p)
	}
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
		return t.serverPrompt(ctx, p)
	}
	return t.write(fmt.Sprintf("There is no command %s.\n\n%s", text.Code("/"+p.command),
		helpText()))
}

// help answers /help.
func (t *turn) help(context.Context, prompt) error { return t.write(helpText()) }

func helpText() string {
	var b strings.Builder
	b.WriteString("You can use these commands:\n\n")
	b.WriteString("- `/roots [add DIR | remove DIR]`: Show the session's folders and MCP servers," +
		" or add or remove a folder; asks first\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- %s: %s\n", text.Code(c.usage()), c.description)
	}
	b.WriteString("\nSkills and commands found in the folders are commands too.\n")
	b.WriteString(
		"\nAny other text finds the lines in all folders that contain all of its words.\n")
	b.WriteString("\n" + editUsage)
	return b.String()
}

// announceCommands sends the list of slash commands if it has changed since it was last sent.
func (s *session) announceCommands(ctx context.Context, to backend.Updates) error {
	var own []sdk.AvailableCommand
	for _, c := range commands() {
		own = append(own, c.announced())
	}
	return s.announced.Announce(ctx, s.host, to, own, s.limits.commands)
}

// maxDescription bounds a description from a folder or server in a list, in characters.
const maxDescription = 300
