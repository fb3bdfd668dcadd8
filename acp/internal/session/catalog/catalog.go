// Package catalog keeps what the roots of a session hold for agents.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure a [Catalog].
type Options struct {
	Roots *workspace.Workspace
	Wait  time.Duration   // how long Refresh waits for a scan
	Base  context.Context // of scans that go on then
	Tasks *tasks.Group
	Log   *slog.Logger // of the session
}

// Catalog knows what the roots of a session hold for agents. It is safe for concurrent use.
type Catalog struct {
	options  Options
	found    atomic.Pointer[discovery.Catalog] // by the last scan
	scanning tasks.Mutex[struct{}]             // used by Refresh
}

// Scan scans the roots for the first time.
func Scan(ctx context.Context, o Options) (*Catalog, error) {
	c := &Catalog{options: o, scanning: tasks.NewMutex(struct{}{})}
	return c, c.scan(ctx)
}

func (c *Catalog) scan(ctx context.Context) error {
	found, err := discovery.Scan(ctx, c.options.Roots)
	if err == nil {
		c.found.Store(found)
	}
	return err
}

// Found returns what the last scan has found.
func (c *Catalog) Found() *discovery.Catalog { return c.found.Load() }

// Refresh scans the roots again. If that takes longer than Wait, or ctx ends, Refresh returns, and
// what was found before remains until the scan is complete. At most one scan runs at a time.
func (c *Catalog) Refresh(ctx context.Context) {
	o := c.options
	ctx, cancel := context.WithTimeoutCause(ctx, o.Wait,
		fmt.Errorf("the scan takes longer than %v", o.Wait))
	defer cancel()
	err := o.Tasks.OnDisk(ctx, func() error {
		return c.scanning.With(ctx, func(*struct{}) error { return c.scan(o.Base) })
	})
	if err != nil && !errors.Is(err, backend.ErrCancelled) {
		o.Log.Warn("cannot scan the roots: "+
			"the prompt uses the instructions, skills and commands found before",
			"error", err)
	}
}

// ListedFolders returns a message to the user about files in cwd that list folders which the
// session does not have, or "". The folders are not added, because somebody other than the user may
// have written the file.
func (c *Catalog) ListedFolders(ctx context.Context) (string, error) {
	files, err := tasks.FromDisk(ctx, c.options.Tasks, func() ([]discovery.WorkspaceFile, error) {
		return c.Found().WorkspaceFiles(ctx)
	})
	var b strings.Builder
	for _, f := range files {
		name := text.Printable(filepath.Base(f.Path))
		fmt.Fprintf(&b, "%s lists %s: %s\n\n", text.Code(name),
			text.Count(len(f.Folders), "more folder", "more folders"),
			text.Code("/"+backend.RootsCommand+" add "+name))
	}
	return b.String(), err
}
