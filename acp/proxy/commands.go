package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	commandsMember = "availableCommands"

	maxCommands    = 500  // commands of the roots that are announced
	maxDescription = 1000 // characters of a command's description
)

// commands are the slash commands that a session's client is offered: the child's, followed by the
// commands and skills of the roots whose names the child does not use. If the roots have none, the
// child's announcements pass unchanged. Activations that replace each other share the commands,
// because a child need not announce its own again.
type commands struct {
	proxy     *proxy
	announced atomic.Pointer[backend.Raw] // the child's latest, an empty announcement at first
	said      sync.Map                    // names of commands whose conflicts the user knows

	mu    sync.Mutex  // held while an announcement is sent, so that the latest is sent last
	sent  backend.Raw // the last one, nil if none
	stale bool        // the history may end with commands that are gone
}

// newCommands returns the commands of a session before the child has announced any.
func newCommands(p *proxy, stale bool) *commands {
	c := &commands{proxy: p, stale: stale}
	c.announced.Store(new(backend.Raw(
		`{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`)))
	return c
}

// announceChild passes on an announcement of the child, with the commands of the roots.
func (c *commands) announceChild(
	ctx context.Context, roots *discovery.Catalog, to backend.Updates, u backend.Raw,
) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announced.Store(&u)
	with, _ := c.withRoots(roots, u)
	return c.sendLocked(ctx, to, with)
}

// announceRoots announces the commands of the roots if they have changed. It logs errors.
func (c *commands) announceRoots(
	ctx context.Context, roots *discovery.Catalog, to backend.Updates,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	with, added := c.withRoots(roots, *c.announced.Load())
	if added == 0 && c.sent == nil && !c.stale || bytes.Equal(with, c.sent) {
		return
	}
	if err := c.sendLocked(ctx, to, with); err != nil {
		c.proxy.log.Debug("cannot announce the commands of the roots", "error", err)
	}
}

// sendLocked shows the client an announcement.
func (c *commands) sendLocked(ctx context.Context, to backend.Updates, u backend.Raw) error {
	update := backend.Update{Kind: sessionstore.AvailableCommandsUpdate, Raw: u}
	if err := to.Update(ctx, update); err != nil {
		return err
	}
	c.sent, c.stale = u, false
	return nil
}

// ofRoots returns the commands and skills of the roots that are offered: those whose names the
// child does not use, whether it has announced them or not.
func (c *commands) ofRoots(roots *discovery.Catalog) (offered, taken []discovery.SlashCommand) {
	if roots == nil {
		return nil, nil
	}
	names := slices.Concat(backend.AdapterCommands(), profiles.CommonCommands(),
		c.proxy.options.Profile.Finds.Commands, commandNames(*c.announced.Load()))
	return roots.SlashCommands(names...)
}

// withRoots appends the commands of the roots to the child's latest announcement, and returns it
// with their number. It returns an announcement that it cannot read unchanged.
func (c *commands) withRoots(
	roots *discovery.Catalog, u backend.Raw,
) (with backend.Raw, added int) {
	offered, _ := c.ofRoots(roots)
	if len(offered) > maxCommands {
		c.proxy.log.Warn("cannot announce all commands of the roots: there are too many",
			"found", len(offered), "limit", maxCommands)
		offered = offered[:maxCommands]
	}
	if len(offered) == 0 {
		return u, 0
	}
	entries := make([]backend.Raw, len(offered))
	for i, command := range offered {
		entries[i] = commandEntry(command)
	}
	list, ok := strictjson.Append(strictjson.Find(u, "update", commandsMember), entries...)
	if !ok {
		return u, 0
	}
	return strictjson.SetAt(u, list, "update", commandsMember), len(offered)
}

// conflicts returns a note, once for each name, about the commands and skills of the roots that are
// not used when the user calls name. used is the command of the roots that takes precedence over
// them, or nil if it is a command of the child. conflicts returns "" if there is nothing to note.
func (c *commands) conflicts(
	roots *discovery.Catalog, mode profiles.RootsMode, name string, used *discovery.Artifact,
	taken []discovery.SlashCommand,
) string {
	if roots == nil {
		return ""
	}
	winner, losers := "a command of the agent", []discovery.Artifact(nil)
	if used != nil {
		winner = fmt.Sprintf("the %s %s", used.Kind, text.Code(used.Path))
		losers = roots.Losers(*used)
	}
	finds := c.proxy.options.Profile.Finds.Matcher(roots, mode)
	for _, t := range taken {
		if t.Name == name && !finds(t.Artifact) {
			losers = append(append(losers, t.Artifact), roots.Losers(t.Artifact)...)
		}
	}
	if len(losers) == 0 {
		return ""
	}
	if _, said := c.said.LoadOrStore(name, true); said {
		return ""
	}
	var paths []string
	for _, loser := range losers {
		paths = append(paths, text.Code(loser.Path))
	}
	return fmt.Sprintf("%s is %s. Not used, because of the same name: %s.",
		text.Code("/"+name), winner, strings.Join(paths, ", "))
}

// commandEntry returns a command of the roots as it is announced, with its root.
func commandEntry(c discovery.SlashCommand) backend.Raw {
	description := text.Line(c.Description, maxDescription)
	description = strings.TrimSpace(fmt.Sprintf("%s (from %s)", description, c.Artifact.Root.Dir))
	hint := text.Line(c.Hint, maxDescription)
	return backend.Encode(backend.NewCommand(c.Name, description, hint))
}

// commandNames returns the names in an announcement, without the "$" that Codex puts before the
// names of skills.
func commandNames(u backend.Raw) []string {
	var p struct {
		Update struct {
			AvailableCommands []struct{ Name string }
		}
	}
	if json.Unmarshal(u, &p) != nil {
		return nil
	}
	var names []string
	for _, c := range p.Update.AvailableCommands {
		names = append(names, strings.TrimLeft(c.Name, "/$"))
	}
	return names
}
