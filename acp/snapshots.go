package acp

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// snapshots returns what folders of sessions had before.
func (a *adapter) snapshots() worktree.Snapshots {
	return worktree.NewSnapshots(a.options.SnapshotDir)
}

// takeSnapshots keeps what the folders of a session have before the backend gets a prompt, unless
// that was done for an earlier one.
func (a *adapter) takeSnapshots(ctx context.Context, id sessionstore.ID, w *workspace.Workspace) {
	o := a.options
	if o.SnapshotDir == "" {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.tuning.SnapshotWait,
		errors.New("it was too large to note what was in it before the first prompt"))
	defer cancel()
	var folders []string
	for _, root := range w.Opened() {
		folders = append(folders, root.Recorded().String())
	}
	err := a.tasks.OnDisk(ctx, func() error {
		return a.snapshots().Take(ctx, string(id), folders)
	})
	if err != nil {
		a.log.Warn("cannot take snapshots of folders", "session", id, "error", err)
	}
}
