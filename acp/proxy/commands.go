package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The client is offered the child's slash commands, followed by the commands and skills of the
// roots whose names the child does not use. If the roots have none, the child's announcements pass
// unchanged.

const (
	commandsMember = "availableCommands"

	maxCommands    = 500  // commands of the roots that are announced
	maxDescription = 1000 // characters of a command's description
)

// announcement holds the slash commands that a session's client was sent. Activations that replace
// each other share it, because a child need not announce its commands again.
type announcement struct {
	sending sync.Mutex  // held while one is sent, so that the latest is sent last
	sent    backend.Raw // nil if none; guarded by sending
	stale   bool        // the history may end with commands that are gone; guarded by sending

	mu      sync.Mutex
	said    map[string]bool    // names of commands whose conflicts the user was told about
	child   backend.Raw        // the child's latest announcement, nil if none
	catalog *discovery.Catalog // from which the roots' commands were last taken
}

// childCommands returns the child's latest announcement, nil if none.
func (a *announcement) childCommands() backend.Raw {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.child
}

// outdated reports whether the roots were scanned since it was last called.
func (a *announcement) outdated(now *discovery.Catalog) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	outdated := a.catalog != now
	a.catalog = now
	return outdated
}

// send shows the client an announcement. The caller must hold a.sending.
func (a *announcement) send(ctx context.Context, to backend.Updates, u backend.Raw) error {
	update := backend.Update{Kind: sessionstore.AvailableCommandsUpdate, Raw: u}
	if err := to.Update(ctx, update); err != nil {
		return err
	}
	a.sent, a.stale = u, false
	return nil
}

// announceChild passes on an announcement of the child, with the commands of the roots.
func (s *session) announceChild(ctx context.Context, to backend.Updates, u backend.Raw) error {
	a := s.announced
	a.sending.Lock()
	defer a.sending.Unlock()
	a.mu.Lock()
	a.child = u
	a.mu.Unlock()
	with, _ := s.withRootCommands(u)
	return a.send(ctx, to, with)
}

// announceRoots announces the commands of the roots if they have changed. It logs errors.
func (s *session) announceRoots(ctx context.Context, to backend.Updates) {
	a := s.announced
	a.sending.Lock()
	defer a.sending.Unlock()
	u := a.childCommands()
	if u == nil {
		u = backend.Encode(map[string]any{"update": sdk.SessionAvailableCommandsUpdate{
			SessionUpdate:     string(sessionstore.AvailableCommandsUpdate),
			AvailableCommands: []sdk.AvailableCommand{},
		}})
	}
	with, added := s.withRootCommands(u)
	if added == 0 && a.sent == nil && !a.stale || bytes.Equal(with, a.sent) {
		return
	}
	if err := a.send(ctx, to, with); err != nil {
		s.proxy.log.Debug("cannot announce the commands of the roots", "error", err)
	}
}

// rootCommands returns the commands and skills of the roots that are offered: those whose names the
// child does not use, whether it has announced them or not. announced is the child's latest
// announcement, or nil.
func (s *session) rootCommands(announced backend.Raw) (offered, taken []discovery.SlashCommand) {
	catalog := s.host.Catalog()
	if catalog == nil {
		return nil, nil
	}
	names := slices.Concat(backend.AdapterCommands(), profiles.CommonCommands(),
		s.proxy.options.Profile.Finds.Commands, commandNames(announced))
	return catalog.SlashCommands(names...)
}

// withRootCommands appends the commands of the roots to an announcement, and returns it with their
// number. It returns an announcement that it cannot read unchanged.
func (s *session) withRootCommands(u backend.Raw) (with backend.Raw, added int) {
	commands, _ := s.rootCommands(u)
	if len(commands) > maxCommands {
		s.proxy.log.Warn("cannot announce all commands of the roots: there are too many",
			"found", len(commands), "limit", maxCommands)
		commands = commands[:maxCommands]
	}
	if len(commands) == 0 {
		return u, 0
	}
	entries := make([]backend.Raw, len(commands))
	for i, c := range commands {
		entries[i] = commandEntry(c)
	}
	list, ok := strictjson.Append(strictjson.Find(u, "update", commandsMember), entries...)
	if !ok {
		return u, 0
	}
	return strictjson.SetAt(u, list, "update", commandsMember), len(commands)
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
	if len(u) == 0 || json.Unmarshal(u, &p) != nil {
		return nil
	}
	var names []string
	for _, c := range p.Update.AvailableCommands {
		names = append(names, strings.TrimLeft(c.Name, "/$"))
	}
	return names
}
