package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// catalog knows what the roots of a session hold for agents. It is safe for concurrent use.
type catalog struct {
	adapter  *adapter
	session  sessionstore.ID
	roots    *workspace.Workspace
	found    atomic.Pointer[discovery.Catalog] // by the last scan
	scanning tasks.Mutex[struct{}]             // used by refresh
}

// scan scans the roots.
func (c *catalog) scan(ctx context.Context) error {
	found, err := discovery.Scan(ctx, c.roots)
	if err == nil {
		c.found.Store(found)
	}
	return err
}

// refresh scans the roots again. If that takes longer than RescanWait, or ctx ends, refresh
// returns, and what was found before remains until the scan is complete. At most one scan runs at a
// time.
func (c *catalog) refresh(ctx context.Context) {
	a := c.adapter
	wait := a.options.tuning.RescanWait
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the scan takes longer than %v", wait))
	defer cancel()
	err := a.tasks.OnDisk(ctx, func() error {
		return c.scanning.With(ctx, func(*struct{}) error { return c.scan(a.base) })
	})
	if err != nil && !errors.Is(err, backend.ErrCancelled) {
		a.log.Warn("cannot scan the roots: "+
			"the prompt uses the instructions, skills and commands found before",
			"session", c.session, "error", err)
	}
}

// listedFolders returns a message to the user about files in cwd that list folders which the
// session does not have, or "". The folders are not added, because somebody other than the user may
// have written the file.
func (c *catalog) listedFolders(ctx context.Context) (string, error) {
	files, err := tasks.FromDisk(ctx, c.adapter.tasks, func() ([]discovery.WorkspaceFile, error) {
		return c.found.Load().WorkspaceFiles(ctx)
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
