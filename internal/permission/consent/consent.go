// Package consent remembers what the user allowed permanently: MCP servers that were found in
// roots, folders that were added to sessions, rules about what agents may do, and links that lead
// to what a process in the sandbox may write. Each consent is a separate file in a directory below
// the state directory, never in a root.
package consent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// ID identifies a consent: 64 hexadecimal digits.
type ID string

func (id ID) isValid() bool {
	return len(id) == 64 && strings.Trim(string(id), "0123456789abcdef") == ""
}

// Short returns the digits that are shown to people. [Store.Find] accepts them.
func (id ID) Short() string { return text.Prefix(string(id), 12) }

// NewID returns the ID of the consent that the parts describe. Different parts have different IDs.
func NewID(parts ...[]string) ID {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d\n", len(part))
		for _, value := range part {
			fmt.Fprintf(hash, "%d %s\n", len(value), value)
		}
	}
	return ID(hex.EncodeToString(hash.Sum(nil)))
}

// Consent is something that the user allowed, as it is stored and shown. If its file is damaged,
// only ID and Allowed are set.
type Consent struct {
	ID ID `json:"consentId"`
	// Server is the name of an MCP server, "" for a folder or commands.
	Server string `json:"server,omitempty"`
	// Root is the real path of the root that the server was found in, or of the working directory
	// that the folder was added to.
	Root workspace.Dir `json:"root"`
	// File is the file that configures the server. Command is the program of a stdio server, Origin
	// the origin of another, such as https://example.com. The server's arguments, environment and
	// headers, which may hold secrets, are not kept.
	File    string `json:"file,omitempty"`
	Command string `json:"command,omitempty"`
	Origin  string `json:"origin,omitempty"`
	// Folder is the real path of the folder, zero for other consents. Session is the only session
	// that gets it, or "" for all sessions in Root.
	Folder  workspace.Dir `json:"folder,omitzero"`
	Session string        `json:"session,omitempty"`
	// ReadOnly means that nothing in the folder may be changed.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Rule is the text of a rule of package permission that holds in Root, "" for other consents.
	// Config identifies the configuration of the MCP server that it is about. Within is the only
	// folder in Root in which a rule about a command holds, "" for all.
	Rule   string `json:"rule,omitempty"`
	Config string `json:"config,omitempty"`
	Within string `json:"within,omitempty"`
	// Agent, By and Title tell when the user gave a rule: which agent asked in which session, and
	// the title of its tool call.
	Agent string `json:"agent,omitempty"`
	By    string `json:"givenIn,omitempty"`
	Title string `json:"title,omitempty"`
	// Link is a path in Root that leads to Target through links. A process in the sandbox that is
	// granted Link is granted Target.
	Link   string `json:"link,omitempty"`
	Target string `json:"target,omitempty"`
	// Allowed is when the user allowed it, and Used when a rule last decided.
	Allowed time.Time `json:"allowedAt"`
	Used    time.Time `json:"usedAt,omitzero"`
}

// ForFolder returns the consent to give a folder to the session, or to all sessions in cwd if
// session is "". Both are real paths.
func ForFolder(cwd, folder workspace.Dir, session string) Consent {
	id := NewID([]string{"folder", cwd.String(), folder.String(), session})
	return Consent{ID: id, Root: cwd, Folder: folder, Session: session}
}

// ForRule returns the consent to what a rule allows in root, a real path. config identifies the
// configuration of the MCP server that the rule is about, "" for other rules.
func ForRule(root workspace.Dir, rule, config string) Consent {
	id := NewID([]string{"rule", root.String(), rule, config})
	return Consent{ID: id, Root: root, Rule: rule, Config: config}
}

// In returns the consent to a rule in one folder of its root, "" for all.
func (c Consent) In(folder string) Consent {
	if folder != "" {
		c.ID = NewID([]string{"rule", c.Root.String(), c.Rule, c.Config, folder})
		c.Within = folder
	}
	return c
}

// ForLink returns the consent to follow links on the way from path, which is absolute, to target.
func ForLink(path, target string) Consent {
	root, _ := workspace.ParseDir(filepath.Dir(path)) // only shown
	id := NewID([]string{"link", path, target})
	return Consent{ID: id, Root: root, Link: path, Target: target}
}

// isAs reports whether the consent is what its name says, as far as it is read from its file and
// not only compared by its name.
func (c Consent) isAs(name ID) bool {
	switch {
	case c.Rule != "":
		return ForRule(c.Root, c.Rule, c.Config).In(c.Within).ID == name && c.Folder.IsZero() &&
			c.Link == ""
	case c.Link != "":
		return ForLink(c.Link, c.Target).ID == name && c.Folder.IsZero()
	case !c.Folder.IsZero():
		return ForFolder(c.Root, c.Folder, c.Session).ID == name
	}
	return !c.Root.IsZero() && c.Session == ""
}

// Setting names the consent to a folder in messages.
func (c Consent) Setting() string {
	return "/roots add (acp-agent permissions revoke " + c.ID.Short() + ")"
}

// Store keeps consents. It is safe for concurrent use, also by several processes.
type Store struct{ dir string }

// NewStore returns the consents kept in dir, which is created when needed. If dir is "", nothing is
// remembered.
func NewStore(dir string) *Store { return &Store{dir} }

// Remembers reports whether consents are kept at all.
func (s *Store) Remembers() bool { return s.dir != "" }

// Has reports whether the consent was given. Only the existence of its file counts, not its
// content.
func (s *Store) Has(id ID) (bool, error) {
	if s.dir == "" {
		return false, nil
	}
	info, err := os.Lstat(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// Allow remembers a consent, given now.
func (s *Store) Allow(c Consent) error {
	if s.dir == "" {
		return nil
	}
	c.Allowed = time.Now().UTC().Truncate(time.Second)
	content, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return privatefile.WriteFile(s.path(c.ID), append(content, '\n'))
}

// List returns all consents, ordered by root and server, the newest first.
func (s *Store) List() ([]Consent, error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list what is allowed: %w", err)
	}
	var all []Consent
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !ID(entry.Name()).isValid() {
			continue
		}
		one, err := s.read(ID(entry.Name()))
		if errors.Is(err, fs.ErrNotExist) { // just forgotten
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list what is allowed: %w", err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Consent) int {
		return cmp.Or(cmp.Compare(a.Root.String(), b.Root.String()),
			cmp.Compare(a.Server, b.Server), b.Allowed.Compare(a.Allowed), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Folders returns the consents to folders for a session in one of the roots, real paths, the oldest
// first. session is "" for a session that is not known yet.
func (s *Store) Folders(session string, roots ...workspace.Dir) ([]Consent, error) {
	all, err := s.List()
	found := slices.DeleteFunc(all, func(c Consent) bool {
		return c.Folder.IsZero() || !slices.Contains(roots, c.Root) ||
			(c.Session != "" && c.Session != session)
	})
	slices.SortStableFunc(found, func(a, b Consent) int {
		return cmp.Or(a.Allowed.Compare(b.Allowed),
			cmp.Compare(a.Folder.String(), b.Folder.String()))
	})
	return found, err
}

// Use notes that a rule has decided now.
func (s *Store) Use(id ID) error {
	now := time.Now()
	return os.Chtimes(s.path(id), now, now)
}

// Find returns the only consent whose ID starts with prefix.
func (s *Store) Find(prefix ID) (Consent, error) {
	all, err := s.List()
	if err != nil {
		return Consent{}, err
	}
	matches := slices.DeleteFunc(all, func(one Consent) bool {
		return !strings.HasPrefix(string(one.ID), string(prefix))
	})
	switch {
	case prefix == "" || len(matches) == 0:
		return Consent{}, fmt.Errorf("no permission %q: acp-agent permissions list shows all",
			text.Truncate(string(prefix), 100))
	case len(matches) > 1:
		return Consent{}, fmt.Errorf("%d permissions start with %s: give more of the ID",
			len(matches), prefix)
	}
	return matches[0], nil
}

// Forget removes a consent, if there is one. Sessions that already use what it allowed keep it.
func (s *Store) Forget(id ID) error {
	if s.dir == "" || !id.isValid() {
		return nil
	}
	if err := privatefile.Remove(s.path(id)); err != nil {
		return fmt.Errorf("cannot revoke it: %w", err)
	}
	return nil
}

// ForgetSession removes the consents that were given for one session only.
func (s *Store) ForgetSession(session string) error {
	all, err := s.List()
	for _, c := range all {
		if c.Session != "" && c.Session == session {
			err = errors.Join(err, s.Forget(c.ID))
		}
	}
	return err
}

func (s *Store) path(id ID) string { return filepath.Join(s.dir, string(id)) }

// maxRecord is the most bytes of a record that are read.
const maxRecord = 64 << 10

// read reads a record. A damaged record yields a Consent with only an ID and the time of the file.
func (s *Store) read(id ID) (Consent, error) {
	f, err := os.Open(s.path(id))
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
	damaged := Consent{ID: id, Allowed: info.ModTime().UTC()}
	c := damaged
	if json.Unmarshal(content, &c) != nil || !c.isAs(id) {
		return damaged, nil
	}
	c.ID = id
	if c.Rule != "" {
		c.Used = info.ModTime().UTC()
	}
	return c, nil
}
