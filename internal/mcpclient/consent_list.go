package mcpclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/workspace"
)

// ConsentID names a consent: 64 hexadecimal digits.
type ConsentID string

// Consent is a server that the user allowed for good. What it is given, which may hold secrets, is not kept.
type Consent struct {
	ID ConsentID
	// Server is the name that File gives it, Root the real path of the root that it was found in. They are zero if the
	// record was damaged, which is a consent nevertheless.
	Server string
	Root   workspace.Dir
	// File names it. It is "" in a record of an older version, as are Command and Origin.
	File string
	// Command is the program that is started, without its arguments, or Origin where it is reached: https://example.com.
	Command, Origin string
	// Allowed is when.
	Allowed time.Time
}

// UnknownConsentError: nothing was allowed under this ID.
type UnknownConsentError struct{ ID ConsentID }

func (e *UnknownConsentError) Error() string {
	return fmt.Sprintf("there is no consent %q", cut(string(e.ID), 100))
}

// AmbiguousConsentError: the IDs of several consents begin like this.
type AmbiguousConsentError struct {
	Beginning ConsentID
	Matches   []ConsentID
}

func (e *AmbiguousConsentError) Error() string {
	return fmt.Sprintf("the names of %d consents begin with %s: give more of it", len(e.Matches), e.Beginning)
}

// record is what is kept of a consent beside its ID, which alone counts: for the user, who may want it back.
type record struct {
	Server  string    `json:"server"`
	Root    string    `json:"root"`
	File    string    `json:"file,omitempty"`
	Command string    `json:"command,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	Allowed time.Time `json:"allowed,omitzero"`
}

func (c Candidate) record() []byte {
	r := record{Server: c.Config.Name, Root: c.Root.String(), File: c.File, Allowed: time.Now().UTC().Truncate(time.Second)}
	if c.Config.Transport == Stdio {
		r.Command = c.Config.Command
	} else {
		r.Origin = originOf(c.Config.URL)
	}
	return append(backend.Encode(r), '\n')
}

// originOf is the part of a URL that holds no secrets.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// maxRecord is the most bytes of a record that are read.
const maxRecord = 64 << 10

var consentName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// List is all that is allowed, by root and server, the newest first.
func (c *Consents) List() ([]Consent, error) {
	if c.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("what was allowed cannot be listed: %w", err)
	}
	var all []Consent
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !consentName.MatchString(entry.Name()) {
			continue
		}
		one, err := c.read(ConsentID(entry.Name()))
		switch {
		case err == nil:
			all = append(all, one)
		case !errors.Is(err, fs.ErrNotExist): // it was just forgotten
			return nil, fmt.Errorf("what was allowed cannot be listed: %w", err)
		}
	}
	slices.SortFunc(all, func(a, b Consent) int {
		return cmp.Or(cmp.Compare(a.Root.String(), b.Root.String()), cmp.Compare(a.Server, b.Server), b.Allowed.Compare(a.Allowed), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// read reads a record. Of one that is damaged it is known that there is one.
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
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return Consent{}, err
	}
	one := Consent{ID: id, Allowed: info.ModTime().UTC()}
	var r record
	if json.Unmarshal(text, &r) != nil {
		return one, nil
	}
	root, err := workspace.ParseDir(r.Root)
	if err != nil {
		return one, nil
	}
	one.Server, one.Root, one.File, one.Command, one.Origin = r.Server, root, r.File, r.Command, r.Origin
	if !r.Allowed.IsZero() {
		one.Allowed = r.Allowed
	}
	return one, nil
}

// Find is the consent whose ID begins like this. The error is an [*UnknownConsentError], an [*AmbiguousConsentError], or that
// of List.
func (c *Consents) Find(beginning ConsentID) (Consent, error) {
	all, err := c.List()
	if err != nil {
		return Consent{}, err
	}
	var found []Consent
	for _, one := range all {
		if strings.HasPrefix(string(one.ID), string(beginning)) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 0 || beginning == "":
		return Consent{}, &UnknownConsentError{ID: beginning}
	case len(found) > 1:
		e := &AmbiguousConsentError{Beginning: beginning}
		for _, one := range found {
			e.Matches = append(e.Matches, one.ID)
		}
		return Consent{}, e
	}
	return found[0], nil
}

// Forget takes a consent back: the next start of the server asks again. Sessions that it runs in keep it. It is no error
// if there was none.
func (c *Consents) Forget(id ConsentID) error {
	if c.dir == "" || !consentName.MatchString(string(id)) {
		return nil
	}
	if err := privatefile.Remove(c.path(id)); err != nil {
		return fmt.Errorf("a consent cannot be forgotten: %w", err)
	}
	return nil
}
