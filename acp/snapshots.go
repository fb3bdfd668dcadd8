package acp

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/internal/worktree"
)

// snapshots returns what folders of sessions had before.
func (a *agent) snapshots() worktree.Snapshots {
	return worktree.NewSnapshots(a.options.SnapshotDir)
}

// errSlowSnapshot is why a folder has no snapshot.
var errSlowSnapshot = errors.New("it was too large to note what was in it before the first prompt")

// takeSnapshots keeps what the folders have before the backend gets a prompt, unless that was done
// for an earlier one.
func (s *session) takeSnapshots(ctx context.Context) {
	o := s.agent.options
	if o.SnapshotDir == "" {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.tuning.SnapshotWait, errSlowSnapshot)
	defer cancel()
	var folders []string
	for _, root := range s.workspace.Opened() {
		folders = append(folders, root.Recorded().String())
	}
	err := s.agent.tasks.OnDisk(ctx, func() error {
		return s.agent.snapshots().Take(ctx, string(s.storeID), folders)
	})
	if err != nil {
		s.agent.log.Warn("cannot take snapshots of folders", "session", s.id, "error", err)
	}
}
