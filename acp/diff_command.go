package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/text"
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

// answerDiff answers /diff: it compares the folders with the snapshots from the session's first
// prompt.
func (o *ownTurn) answerDiff(prompts.Command) error {
	s := o.session
	all, err := tasks.FromDisk(o.ctx, o.agent.tasks, func() ([]changes.Folder, error) {
		return changes.OfSession(o.ctx, s.storeID, s.workspace.Opened(), s.history(nil),
			o.agent.snapshots())
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, folder := range all {
		fmt.Fprintf(&b, "**%s**: %s\n\n", text.Code(text.Printable(folder.Folder)),
			folder.Summary())
		for _, f := range folder.Files {
			fmt.Fprintf(&b, "- %s %s", text.Code(text.Printable(f.Path)), f.Lines())
			if f.Named {
				b.WriteString(", changed by this session")
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return o.Write(b.String())
}
