package explore

import (
	"bytes"
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
)

// offers is what a session has announced as slash commands.
type offers struct {
	announced backend.Update
	// prompts are those of the MCP servers, as far as they are known.
	prompts []backend.Prompt
	// stale says that the servers' prompts may be others: they were never asked for, or servers were used since.
	stale bool
}

// reserved are the names of our own commands, which nothing else can have.
func reserved() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// announceCommands announces the commands anew if they have changed. MCP servers are asked for their prompts only
// while all of them are ready: none is started for it.
func (t *turn) announceCommands(ctx context.Context) error {
	if t.offers.stale && t.allReady() {
		if prompts, err := t.host.Tools().Prompts(ctx); err == nil {
			t.offers.prompts = prompts
		}
		t.offers.stale = false
	}
	return t.offer(ctx, t.updates)
}

// allReady reports whether there are MCP servers, and all of them take calls.
func (s *session) allReady() bool {
	servers := s.host.Tools().Servers()
	for _, server := range servers {
		if server.State != backend.ServerReady {
			return false
		}
	}
	return len(servers) > 0
}

// offer sends the list of commands, unless it is the one that was sent before.
func (s *session) offer(ctx context.Context, u backend.Updates) error {
	update := encode(s.announcement())
	if bytes.Equal(update, s.offers.announced) {
		return nil
	}
	if err := u.Update(ctx, update); err != nil {
		return err
	}
	s.offers.announced = update
	return nil
}

// announcement is our own commands, then those that the roots hold, then the prompts of MCP servers. A name counts
// once.
func (s *session) announcement() availableCommands {
	a := availableCommands{Kind: "available_commands_update"}
	taken := reserved()
	for _, c := range commands() {
		a.add(c.name, c.description, c.input)
	}
	room := s.options.MaxCommands
	offered, _ := s.host.Catalog().SlashCommands(taken...)
	for _, c := range offered[:min(len(offered), room)] {
		a.add(c.Name, s.says(c.Artifact), hint(c.Hint))
		taken = append(taken, c.Name)
	}
	room -= min(len(offered), room)
	known := make(map[string]bool, len(taken))
	for _, name := range taken {
		known[name] = true
	}
	for _, p := range s.offers.prompts {
		if room > 0 && !known[p.Name] {
			a.add(p.Name, labelledText("Prompt of MCP server "+p.Server, p.Description), promptHint(p))
			room--
		}
	}
	return a
}

func (a *availableCommands) add(name, description, input string) {
	one := availableCommand{Name: name, Description: description}
	if input != "" {
		one.Input = &commandInput{Hint: input}
	}
	a.Commands = append(a.Commands, one)
}

// longestSaid bounds what a folder or a server says of one thing in a list, in bytes.
const longestSaid = 300

// says is an artifact's description, labelled with its root: it is the folder's word (A30).
func (s *session) says(a discovery.Artifact) string {
	kind := "Command"
	if a.Kind == discovery.Skill {
		kind = "Skill"
	}
	return labelledText(kind+" of "+s.roots[a.Root.Index].label, a.Description)
}

// labelledText is a foreign text of one line behind what says whose it is.
func labelledText(label, text string) string {
	label = printable(label)
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return label
	}
	return label + ": " + clip(printable(text), longestSaid)
}

// hint is what to type after a discovered command.
func hint(given string) string {
	if given = strings.Join(strings.Fields(given), " "); given == "" {
		return "[ARGUMENTS]"
	}
	return clip(printable(given), longestSaid)
}
