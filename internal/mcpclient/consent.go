package mcpclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Consents remembers which found servers the user always allows to start: one file each, in a directory below the state
// directory, never in a root. It is safe for concurrent use, also by several processes.
type Consents struct{ dir string }

// NewConsents returns the consents kept in dir, which is created when needed. If dir is "", nothing is remembered.
func NewConsents(dir string) *Consents { return &Consents{dir} }

// ConsentID identifies a consent: 64 hexadecimal digits.
type ConsentID string

func (id ConsentID) isValid() bool {
	return len(id) == 64 && strings.Trim(string(id), "0123456789abcdef") == ""
}

// Consent is a server that the user always allows. Its arguments, environment and headers, which may hold secrets, are not
// kept.
type Consent struct {
	ID ConsentID
	// Server is the name of the server, Root the real path of the root that it was found in, File the file that configures
	// it. They are zero if the record is damaged; the consent still holds.
	Server string
	Root   workspace.Dir
	File   string
	// Command is the program of a stdio server, Origin the origin of another, such as https://example.com.
	Command, Origin string
	// Allowed is when the user allowed it.
	Allowed time.Time
}

// Ask asks the user whether s may start, showing its whole configuration, unless they have always allowed it with the same content
// of the files in w that it names. It returns nil if they allow it and remembers an answer that is meant to last. If the request was
// cancelled with the turn, the error is [backend.ErrCancelled].
func (c *Consents) Ask(ctx context.Context, client backend.Client, w *workspace.Workspace, s FoundServer) error {
	if err := s.readFiles(w); err != nil {
		return err
	}
	if len(s.gaps) == 0 {
		if known, err := c.allowed(s); err != nil || known {
			return err
		}
	}
	offers := []backend.Offer{{Answer: backend.AllowOnce, Label: "Start it for this session"}}
	switch {
	case len(s.gaps) > 0:
	case len(s.files) > 0:
		offers = append(offers, backend.Offer{Answer: backend.AllowAlways, Label: "Always start it, as long as its configuration and the files that it names stay the same"})
	default:
		offers = append(offers, backend.Offer{Answer: backend.AllowAlways, Label: "Always start it, as long as its configuration stays the same"})
	}
	offers = append(offers, backend.Offer{Answer: backend.RejectOnce, Label: "Do not start it"})
	shown := sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId("mcp-" + rand.Text()[:16]), Kind: sdk.Ptr(sdk.ToolKindExecute), Status: sdk.Ptr(sdk.ToolCallStatusPending),
		Title:   sdk.Ptr("Start MCP server " + quotedName(s.Config.Name) + ", found in " + text.Printable(s.File)),
		Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(s.describe()))},
	}
	answer, err := backend.Question{ToolCall: backend.Encode(shown), Offers: offers}.Ask(ctx, client)
	if err != nil {
		return err
	}
	if err := checkAnswer("MCP server "+printableName(s.Config.Name), answer); err != nil {
		return err
	}
	now := s
	if err := now.readFiles(w); err != nil {
		return err
	}
	if now.ID() != s.ID() || !slices.Equal(now.gaps, s.gaps) {
		return fmt.Errorf("MCP server %s was not started, because a file that it names was changed while you were asked: start it again to see the change", printableName(s.Config.Name))
	}
	if answer == backend.AllowAlways {
		return c.allow(s)
	}
	return nil
}

// List returns all consents, ordered by root and server, the newest first.
func (c *Consents) List() ([]Consent, error) {
	if c.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the allowed MCP servers: %w", err)
	}
	var all []Consent
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !ConsentID(entry.Name()).isValid() {
			continue
		}
		one, err := c.read(ConsentID(entry.Name()))
		if errors.Is(err, fs.ErrNotExist) { // just forgotten
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the allowed MCP servers: %w", err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Consent) int {
		return cmp.Or(cmp.Compare(a.Root.String(), b.Root.String()), cmp.Compare(a.Server, b.Server), b.Allowed.Compare(a.Allowed), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Find returns the only consent whose ID starts with prefix.
func (c *Consents) Find(prefix ConsentID) (Consent, error) {
	all, err := c.List()
	if err != nil {
		return Consent{}, err
	}
	matches := slices.DeleteFunc(all, func(one Consent) bool { return !strings.HasPrefix(string(one.ID), string(prefix)) })
	switch {
	case prefix == "" || len(matches) == 0:
		return Consent{}, fmt.Errorf("no consent %q: acp-agent consents list shows all consents", text.Truncate(string(prefix), 100))
	case len(matches) > 1:
		return Consent{}, fmt.Errorf("%d consents start with %s: give more of the ID", len(matches), prefix)
	}
	return matches[0], nil
}

// Forget removes a consent, if there is one: the next start of the server asks again. Sessions that already run the server
// keep it.
func (c *Consents) Forget(id ConsentID) error {
	if c.dir == "" || !id.isValid() {
		return nil
	}
	if err := privatefile.Remove(c.path(id)); err != nil {
		return fmt.Errorf("cannot forget the consent: %w", err)
	}
	return nil
}

func (c *Consents) path(id ConsentID) string { return filepath.Join(c.dir, string(id)) }

// allowed reports whether the user always allows s. Only the existence of the record counts, not its content.
func (c *Consents) allowed(s FoundServer) (bool, error) {
	if c.dir == "" {
		return false, nil
	}
	info, err := os.Lstat(c.path(s.ID()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot look up whether MCP server %s is allowed: %w", printableName(s.Config.Name), err)
	}
	return info.Mode().IsRegular(), nil
}

// allow remembers that the user always allows s.
func (c *Consents) allow(s FoundServer) error {
	if c.dir == "" {
		return nil
	}
	if err := privatefile.WriteFile(c.path(s.ID()), s.record()); err != nil {
		return fmt.Errorf("cannot remember that MCP server %s is allowed: %w", printableName(s.Config.Name), err)
	}
	return nil
}

// record is the content of a consent's file, which only informs the user.
type record struct {
	Server  string    `json:"server"`
	Root    string    `json:"root"`
	File    string    `json:"file,omitempty"`
	Command string    `json:"command,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	Allowed time.Time `json:"allowed,omitzero"`
}

// maxRecord is the most bytes of a record that are read.
const maxRecord = 64 << 10

func (s FoundServer) record() []byte {
	r := record{Server: s.Config.Name, Root: s.Root.String(), File: s.File, Allowed: time.Now().UTC().Truncate(time.Second)}
	if s.Config.Transport == Stdio {
		r.Command = s.Config.Command
	} else {
		r.Origin = origin(s.Config.URL) // the rest may hold secrets
	}
	return append(backend.Encode(r), '\n')
}

// read reads a record. A damaged record yields a Consent with only an ID and the time of the file.
func (c *Consents) read(id ConsentID) (Consent, error) {
	f, err := os.Open(c.path(id))
	if err != nil {
		return Consent{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Consent{}, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return Consent{}, err
	}
	one := Consent{ID: id, Allowed: info.ModTime().UTC()}
	var r record
	if json.Unmarshal(content, &r) != nil {
		return one, nil
	}
	root, err := workspace.ParseDir(r.Root)
	if err != nil {
		return one, nil
	}
	one.Server, one.Root, one.File, one.Command, one.Origin = r.Server, root, r.File, r.Command, r.Origin
	if !r.Allowed.IsZero() { // older versions did not record it
		one.Allowed = r.Allowed
	}
	return one, nil
}
