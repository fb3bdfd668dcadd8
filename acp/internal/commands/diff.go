package commands

import (
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// answerDiff answers /diff: it compares the folders with the snapshots from the session's first
// prompt.
func (t *turn) answerDiff(prompts.Command) error {
	all, err := tasks.FromDisk(t.ctx, t.Tasks, func() ([]changes.Folder, error) {
		return changes.OfSession(t.ctx, t.id, t.roots().Opened(),
			sessionstore.WithoutEnds(t.Store.History(t.ctx, t.id)), t.Snapshots)
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, folder := range all {
		fmt.Fprintf(&b, "**%s**: %s\n\n", text.Code(folder.Folder), folder.Summary())
		for _, f := range folder.Files {
			fmt.Fprintf(&b, "- %s %s", text.Code(f.Path), f.Lines())
			if f.Named {
				b.WriteString(", changed by this session")
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return t.Write(b.String())
}
