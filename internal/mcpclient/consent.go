package mcpclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/privatefile"
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
