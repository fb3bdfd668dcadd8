package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Slash commands are the child's, and behind them the commands and skills that were found in the roots and have a name
// that none of the child's has. Where nothing was found, what the child announces passes as it is.

const (
	commandsKind   = "available_commands_update"
	commandsMember = "availableCommands"
	// noCommands is the announcement of a child that makes none.
	noCommands = `{"update":{"sessionUpdate":"` + commandsKind + `","` + commandsMember + `":[]}}`
	// maxDescription bounds the description of a command that was found, in characters.
	maxDescription = 1000
)

// announcement is what a session's client was told of slash commands. Activations that replace each other have it
// in common: a child need not announce its commands again.
type announcement struct {
	telling sync.Mutex // held while the client is told, so that the latest is told last; guards told and stale
	told    backend.Update
	stale   bool // the record may have commands of ours that are there no more

	mu    sync.Mutex
	child backend.Update     // what the child announced last, nil if nothing
	from  *discovery.Catalog // where what was told is from
}

// own is what the child announced last, nil if nothing.
func (a *announcement) own() backend.Update {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.child
}

// announce shows the client what the child announces, with what was found.
func (s *session) announce(ctx context.Context, to backend.Updates, u backend.Update) error {
	a := s.announced
	a.telling.Lock()
	defer a.telling.Unlock()
	a.mu.Lock()
	a.child = u
	a.mu.Unlock()
	with, _ := s.withFound(u)
	return a.tell(ctx, to, with)
}

// announceFound shows the client what was found, if that is not what it was told last.
func (s *session) announceFound(ctx context.Context, to backend.Updates) error {
	a := s.announced
	a.telling.Lock()
	defer a.telling.Unlock()
	child := a.own()
	if child == nil {
		child = backend.Update(noCommands)
	}
	with, found := s.withFound(child)
	if found == 0 && a.told == nil && !a.stale || bytes.Equal(with, a.told) {
		return nil
	}
	return a.tell(ctx, to, with)
}

// tell shows the client an announcement. The caller holds telling.
func (a *announcement) tell(ctx context.Context, to backend.Updates, u backend.Update) error {
	if err := to.Update(ctx, u); err != nil {
		return err
	}
	a.told, a.stale = u, false
	return nil
}

// isOutdated reports whether the roots were looked at since the client was told, and makes now what it is told from.
func (a *announcement) isOutdated(now *discovery.Catalog) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	outdated := a.from != now
	a.from = now
	return outdated
}

// found are the commands and skills of the roots that the child has no command of the same name for.
func (s *session) found(child []string) []discovery.SlashCommand {
	catalog := s.host.Catalog()
	if catalog == nil {
		return nil
	}
	offered, _ := catalog.SlashCommands(child...)
	return offered
}

// withFound is an announcement of the child's with the commands that were found behind its own. Of an announcement
// that cannot be read nothing is changed.
func (s *session) withFound(u backend.Update) (with backend.Update, found int) {
	offered := s.found(commandNames(u))
	if limit := s.proxy.options.MaxCommands; len(offered) > limit {
		s.proxy.log.Warn("more commands were found than are announced", "found", len(offered), "limit", limit)
		offered = offered[:limit]
	}
	if len(offered) == 0 {
		return u, 0
	}
	entries := make([]backend.Raw, len(offered))
	for i, c := range offered {
		entries[i] = commandEntry(c)
	}
	inner, _, err := strictjson.Take(u, "update")
	if err != nil {
		return u, 0
	}
	list, _, err := strictjson.Take(inner, commandsMember)
	if err != nil {
		return u, 0
	}
	list, ok := appended(list, entries...)
	if !ok {
		return u, 0
	}
	return replaced(u, "update", replaced(inner, commandsMember, list)), len(offered)
}

// commandEntry is a command as it is announced, labelled with its root (A30).
func commandEntry(c discovery.SlashCommand) backend.Raw {
	type input struct {
		Hint string `json:"hint"`
	}
	entry := struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Input       *input `json:"input,omitempty"`
	}{Name: c.Name, Description: strings.TrimSpace(fmt.Sprintf("%s (from %s)", oneLine(c.Description, maxDescription), c.Artifact.Root.Dir))}
	if hint := oneLine(c.Hint, maxDescription); hint != "" {
		entry.Input = &input{hint}
	}
	raw, err := json.Marshal(entry)
	if err != nil {
		return backend.Raw(`null`) // strings can always be written
	}
	return raw
}

// commandNames are the names in an announcement.
func commandNames(u backend.Update) []string {
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
		names = append(names, strings.TrimPrefix(c.Name, "/"))
	}
	return names
}

// appended is a JSON array with values behind its own, whose bytes stay. Nothing and null are empty arrays; of
// anything else ok is false.
func appended(array backend.Raw, values ...backend.Raw) (longer backend.Raw, ok bool) {
	array = bytes.TrimSpace(array)
	if len(array) == 0 || string(array) == "null" {
		array = backend.Raw(`[]`)
	}
	end := len(array) - 1
	if array[0] != '[' || array[end] != ']' {
		return nil, false
	}
	longer = append(longer, array[:end]...)
	for i, value := range values {
		if i > 0 || len(bytes.TrimSpace(array[1:end])) > 0 {
			longer = append(longer, ',')
		}
		longer = append(longer, value...)
	}
	return append(longer, ']'), true
}
