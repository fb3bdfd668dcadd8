package backend

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The names of the slash commands that the adapter announces and answers itself, in front of any
// backend. A backend must not use these names for anything else, except that an agent may have a
// command for which there is an [OtherName].
const (
	RootsCommand       = "roots"
	MCPCommand         = "mcp"
	WorktreeCommand    = "worktree"
	ForkCommand        = "fork"
	DiffCommand        = "diff"
	PermissionsCommand = "permissions"
)

// adapterCommands are what clients show of the adapter's commands, and the names that these have
// beside an agent's commands of the same name, or "".
var adapterCommands = []struct{ name, other, description, hint string }{
	{RootsCommand, "", "Show the session's folders, or add or remove one; asks first",
		"[add DIR | remove DIR]"},
	{MCPCommand, "mcp-servers", "List the MCP servers, list what they offer, start one " +
		"configured in a folder (asks first), or read a resource",
		"[tools | start NAME | read SERVER URI]"},
	{WorktreeCommand, "", "Copy this conversation into git worktrees of all folders, on a new " +
		"branch; asks first", "NAME"},
	{ForkCommand, "fork-conversation", "Show the turns of this conversation, or copy it up to " +
		"one of them; files are not changed", "[TURN]"},
	{DiffCommand, "session-diff", "Show what was changed in the folders since this session began",
		""},
	{PermissionsCommand, "permission-rules", "Show or revoke what agents may do without asking",
		"[revoke ID]"},
}

// AdapterCommand returns a command of the adapter, by either name, as it is announced.
func AdapterCommand(name string) sdk.AvailableCommand {
	for _, c := range adapterCommands {
		if name == c.name || name == c.other {
			return NewCommand(name, c.description, c.hint)
		}
	}
	return sdk.AvailableCommand{}
}

// OtherName returns the name that a command of the adapter has beside the agent's of the same name.
func OtherName(command string) string {
	for _, c := range adapterCommands {
		if c.name == command {
			return cmp.Or(c.other, command)
		}
	}
	return command
}

// AdapterCommands returns all names of the commands that the adapter answers.
func AdapterCommands() (names []string) {
	for _, c := range adapterCommands {
		if names = append(names, c.name); c.other != "" {
			names = append(names, c.other)
		}
	}
	return names
}

// OwnCommands returns all names of the commands that acp-agent itself answers in sessions with a
// kind of backend, or with the agent of this name.
func OwnCommands(kind string) []string {
	switch kind {
	case "explore":
		return append(AdapterCommands(), "find", "search", "read", "instructions", "skills",
			"commands", "call", "help")
	case "model":
		return append(AdapterCommands(), "compact", "undo", "model", "help")
	}
	return AdapterCommands()
}

// IsOwnCommand reports whether a prompt is one of some commands.
func IsOwnCommand(prompt string, names []string) bool {
	name, isCommand := strings.CutPrefix(strings.TrimSpace(prompt), "/")
	name, _ = text.CutWord(name)
	return isCommand && slices.Contains(names, name)
}

// maxDescription bounds the description and the hint of a command found in a root, in characters.
const maxDescription = 300

// NewCommand returns a slash command. hint says what to type after the name, "" for nothing.
func NewCommand(name, description, hint string) sdk.AvailableCommand {
	c := sdk.AvailableCommand{Name: name, Description: description}
	if hint != "" {
		c.Input = &sdk.AvailableCommandInput{
			Unstructured: &sdk.UnstructuredCommandInput{Hint: hint}}
	}
	return c
}

// Commands announces the slash commands of a session. The zero value has announced nothing.
type Commands struct{ announced Update }

// Announce sends the backend's own commands, up to max skills and commands of the roots, and up to
// max known prompts of MCP servers. It sends nothing if it sent the same last time.
func (c *Commands) Announce(
	ctx context.Context, h Host, to Updates, own []sdk.AvailableCommand, max int,
) error {
	list, reserved := slices.Clone(own), AdapterCommands()
	for _, o := range own {
		reserved = append(reserved, o.Name)
	}
	found, _ := h.Catalog().SlashCommands(reserved...)
	labels := h.Workspace().Labels()
	for _, f := range found[:min(len(found), max)] {
		kind := "Command"
		if f.Artifact.Kind == discovery.Skill {
			kind = "Skill"
		}
		description := text.Attributed(kind+" of "+labels[f.Artifact.Root.Index], f.Description,
			maxDescription)
		list = append(list, NewCommand(f.Name, description,
			cmp.Or(text.Printable(text.Line(f.Hint, maxDescription)), "[ARGUMENTS]")))
	}
	left := max
	for _, s := range h.Tools().Servers() {
		for _, p := range s.Prompts[:min(len(s.Prompts), left)] {
			description := text.Attributed("Prompt of MCP server "+text.Quote(s.Name),
				p.Description, maxDescription)
			list = append(list, NewCommand(p.Name, description, p.Hint))
			left--
		}
	}
	update := NewUpdate(sdk.SessionAvailableCommandsUpdate{
		SessionUpdate: string(sessionstore.AvailableCommandsUpdate), AvailableCommands: list,
	})
	if bytes.Equal(update.Raw, c.announced.Raw) {
		return nil
	}
	if err := to.Update(ctx, update); err != nil {
		return err
	}
	c.announced = update
	return nil
}
