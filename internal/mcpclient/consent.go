package mcpclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/workspace"
)

// Consents remembers which candidates the user allowed for good: a file for each in a directory of the state
// directory, never in a repository. It is safe for concurrent use, by several processes too.
type Consents struct{ dir string }

// NewConsents remembers in dir, which is made when it is first needed. Nothing is remembered if dir is "".
func NewConsents(dir string) *Consents { return &Consents{dir} }

func (c *Consents) path(id ConsentID) string { return filepath.Join(c.dir, string(id)) }

// Allowed reports whether the user allowed x for good, as it is now.
func (c *Consents) Allowed(x Candidate) (bool, error) {
	if c.dir == "" {
		return false, nil
	}
	info, err := os.Lstat(c.path(x.ID()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("whether MCP server %s was allowed cannot be looked up: %w", x.Config.Name, err)
	}
	return info.Mode().IsRegular(), nil
}

// Allow remembers that x is allowed.
func (c *Consents) Allow(x Candidate) error {
	if c.dir == "" {
		return nil
	}
	if err := privatefile.WriteFile(c.path(x.ID()), x.record()); err != nil {
		return fmt.Errorf("that MCP server %s is allowed cannot be remembered: %w", x.Config.Name, err)
	}
	return nil
}

// Ask asks the user whether x may be started, unless they allowed it for good, and remembers an answer for good. Nil is
// a yes, a no a [*DeniedError]. The question shows the whole command.
func (c *Consents) Ask(ctx context.Context, client backend.Client, x Candidate) error {
	if known, err := c.Allowed(x); err != nil || known {
		return err
	}
	shown := toolCall{
		ID: "mcp-" + rand.Text()[:16], Kind: "execute", Status: pending,
		Title:   cut(oneLine("Start MCP server "+strconv.Quote(x.Config.Name)+", found in "+x.File), 300),
		Content: contents([]backend.Raw{textBlock(x.describe())}),
	}
	q := backend.Question{ToolCall: backend.Encode(shown), Offers: []backend.Offer{
		{Answer: backend.AllowOnce, Label: "Start it for this session"},
		{Answer: backend.AllowAlways, Label: "Always start it, as long as its configuration stays the same"},
		{Answer: backend.RejectOnce, Label: "Do not start it"},
	}}
	answer, err := q.Ask(ctx, client)
	if err != nil {
		return err
	}
	if answer == backend.AllowAlways {
		return c.Allow(x)
	}
	return denied("MCP server "+x.Config.Name, answer)
}

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

// Candidate is a server that was found in a repository, which nobody starts before the user has allowed it (A25).
type Candidate struct {
	// Root is the real path of the root that it was found in, File the file that names it.
	Root workspace.Dir
	File string
	// Config is what the file says, with nothing replaced in it. All of it is hashed; values of the environment and
	// headers are shown only where they can change what is run.
	Config Config
}

// ID names the consent for c: the hash of what is allowed, which is root, name, what is started or reached, where, and
// what it is given. Another value in its environment can have the same command do something else.
func (c Candidate) ID() ConsentID {
	given := func(pairs []Pair) []string {
		all := make([]string, len(pairs))
		for i, p := range pairs {
			all[i] = strconv.Itoa(len(p.Name)) + " " + p.Name + "=" + p.Value
		}
		slices.Sort(all)
		return all
	}
	hash := sha256.New()
	for _, part := range [][]string{
		{c.Root.String(), c.Config.Name, string(c.Config.Transport), c.Config.Command, c.Config.Dir, c.Config.URL},
		c.Config.Args, given(c.Config.Env), given(c.Config.Headers),
	} {
		fmt.Fprintf(hash, "%d\n", len(part))
		for _, s := range part {
			fmt.Fprintf(hash, "%d %s\n", len(s), s)
		}
	}
	return ConsentID(hex.EncodeToString(hash.Sum(nil)))
}

// describe is all that would be started or reached, quoted and in a block, so that nothing in it can pass for something else
// or hide what is beside it.
func (c Candidate) describe() string {
	var b strings.Builder
	if c.Config.Transport == Stdio {
		b.WriteString("Command: " + strconv.Quote(c.Config.Command) + "\n")
		for i, arg := range c.Config.Args {
			fmt.Fprintf(&b, "Argument %d: %s\n", i+1, strconv.Quote(arg))
		}
		if c.Config.Dir != "" {
			b.WriteString("In the folder: " + strconv.Quote(c.Config.Dir) + "\n")
		}
	} else {
		b.WriteString("URL: " + strconv.Quote(c.Config.URL) + "\n")
	}
	for _, p := range c.Config.Env {
		text := p.Name
		if steers(p.Name) {
			text += "=" + p.Value
		}
		b.WriteString("Environment: " + strconv.Quote(text) + taking(p.Value) + "\n")
	}
	for _, p := range c.Config.Headers {
		b.WriteString("Header: " + strconv.Quote(p.Name) + taking(p.Value) + "\n")
	}
	return "The file below names this MCP server. It runs with your rights, outside the session's containment.\n\n" +
		fenced("File: "+strconv.Quote(c.File)+"\n"+strings.TrimSuffix(b.String(), "\n"))
}

// taking says what a value that is not shown takes from the user's environment, "" if nothing.
func taking(value string) string {
	var names []string
	ReplaceVariables(value, func(v Variable) string {
		if !v.IsFolder() {
			names = append(names, strconv.Quote(v.Name))
		}
		return ""
	})
	if names == nil {
		return ""
	}
	return ", with " + strings.Join(names, " and ") + " of your environment"
}

// steers reports whether the value of a variable can have a program run other code than its command says. Other values
// may be secrets, and are not shown.
func steers(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "GIT_CONFIG_KEY_") { // it names a setting
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "NODE_", "NPM_", "PYTHON", "RUBY", "PERL", "JAVA", "JDK_", "BUN_", "DENO_", "UV_", "PIP_", "GIT_", "GO",
		"CARGO", "RUSTC", "DOTNET_", "COR_", "CORECLR_", "ELECTRON_", "LUA_", "PHP", "XDG_", "R_", "DOCKER_", "SSL_CERT_"} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "TOKEN") && !strings.Contains(name, "KEY") && !strings.Contains(name, "SECRET")
		}
	}
	return slices.Contains([]string{"PATH", "PATHEXT", "ENV", "BASH_ENV", "SHELL", "IFS", "CLASSPATH", "_JAVA_OPTIONS", "HOME",
		"USERPROFILE", "APPDATA", "LOCALAPPDATA", "ZDOTDIR", "COMSPEC", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "EDITOR", "BROWSER", "PAGER"}, name)
}
