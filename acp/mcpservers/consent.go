package mcpservers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/workspace"
)

// Candidate is a server that was found in a repository, which nobody starts before the user has allowed it (A25).
type Candidate struct {
	// Root is the real path of the root that it was found in, File the file that names it.
	Root workspace.Dir
	File string
	// Config is what the file says, with nothing replaced in it. All of it is hashed; values of the environment and
	// headers are shown only where they can change what is run.
	Config Config
}

// Consents remembers which candidates the user allowed for good: a file for each in a directory of the state
// directory, never in a repository. It is safe for concurrent use, by several processes too.
type Consents struct{ dir string }

// NewConsents remembers in dir, which is made when it is first needed. Nothing is remembered if dir is "".
func NewConsents(dir string) *Consents { return &Consents{dir} }

// key is the hash of what was allowed: root, name, what is started or reached, where, and what it is given. Another
// value in its environment can have the same command do something else.
func (c Candidate) key() string {
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
	return hex.EncodeToString(hash.Sum(nil))
}

func (c *Consents) path(x Candidate) string { return filepath.Join(c.dir, x.key()) }

// Allowed reports whether the user allowed x for good, as it is now.
func (c *Consents) Allowed(x Candidate) (bool, error) {
	if c.dir == "" {
		return false, nil
	}
	info, err := os.Lstat(c.path(x))
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
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("that MCP server %s is allowed cannot be remembered: %w", x.Config.Name, err)
	}
	what := runtime.Encode(struct {
		Root   string `json:"root"`
		Server string `json:"server"`
	}{x.Root.String(), x.Config.Name})
	temporary := filepath.Join(c.dir, ".new-"+rand.Text())
	err := writeNew(temporary, append(what, '\n'))
	if err == nil {
		err = os.Rename(temporary, c.path(x))
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("that MCP server %s is allowed cannot be remembered: %w", x.Config.Name, err)
	}
	return nil
}

// writeNew writes a file that was not there, for this user alone.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// Forget takes the permission back. It is no error if there was none.
func (c *Consents) Forget(x Candidate) error {
	if c.dir == "" {
		return nil
	}
	if err := os.Remove(c.path(x)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Ask asks the user whether x may be started, unless they allowed it for good, and remembers an answer for good. Nil is
// a yes, a no a [*DeniedError]. The question shows the whole command.
func (c *Consents) Ask(ctx context.Context, client runtime.Client, x Candidate) error {
	if known, err := c.Allowed(x); err != nil || known {
		return err
	}
	shown := toolCall{
		ID: "mcp-" + rand.Text()[:16], Kind: "execute", Status: pending,
		Title:   cut(oneLine("Start MCP server "+strconv.Quote(x.Config.Name)+", found in "+x.File), 300),
		Content: contents([]runtime.Raw{textBlock(x.describe())}),
	}
	q := runtime.Question{ToolCall: runtime.Encode(shown), Offers: []runtime.Offer{
		{Answer: runtime.AllowOnce, Label: "Start it for this session"},
		{Answer: runtime.AllowAlways, Label: "Always start it, as long as it stays the same"},
		{Answer: runtime.RejectOnce, Label: "Do not start it"},
	}}
	answer, err := q.Ask(ctx, client)
	if err != nil {
		return err
	}
	if answer == runtime.AllowAlways {
		return c.Allow(x)
	}
	return denied("MCP server "+x.Config.Name, answer)
}

// describe is all that would be started or reached, quoted, so that nothing in it can pass for something else.
func (c Candidate) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The file %s names this MCP server. It runs with your rights, outside the session's containment.\n\n", strconv.Quote(c.File))
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
		b.WriteString("Environment: " + strconv.Quote(text) + "\n")
	}
	for _, p := range c.Config.Headers {
		b.WriteString("Header: " + strconv.Quote(p.Name) + "\n")
	}
	return b.String()
}

// steers reports whether the value of a variable can have a program run other code than its command says. Other values
// may be secrets, and are not shown.
func steers(name string) bool {
	name = strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "DYLD_", "NODE_", "NPM_", "PYTHON", "RUBY", "PERL", "JAVA", "JDK_", "BUN_", "DENO_", "UV_", "PIP_", "GIT_", "GO"} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "TOKEN") && !strings.Contains(name, "KEY") && !strings.Contains(name, "SECRET")
		}
	}
	return slices.Contains([]string{"PATH", "PATHEXT", "ENV", "BASH_ENV", "SHELL", "IFS", "CLASSPATH", "_JAVA_OPTIONS"}, name)
}
