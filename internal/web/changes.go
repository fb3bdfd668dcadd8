package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// maxChanged is how many changed files of a folder are shown, and diffBytes how much of the
	// diffs of a session.
	maxChanged = 500
	diffBytes  = 256 << 10
)

// changedFolder is a folder with its changed files.
type changedFolder struct {
	Folder  string              `json:"folder"`
	Summary string              `json:"summary"`
	Files   []conversation.Node `json:"files"`
}

// changes returns what was changed in the folders of a session since it began.
func (o Options) changes(ctx context.Context, q url.Values) (any, error) {
	one, err := o.Store.Get(ctx, sessionstore.ID(q.Get("id")))
	if err != nil {
		return nil, err
	}
	all, err := changes.OfSession(ctx, one.ID, one.Keys.Opened(), o.Store.History(ctx, one.ID),
		o.Snapshots)
	if err != nil {
		return nil, err
	}
	shown, left := []changedFolder{}, diffBytes
	for _, f := range all {
		c := changedFolder{text.Printable(f.Folder), text.Plain(f.Summary()), []conversation.Node{}}
		hunks, err := f.Hunks(ctx)
		if err != nil {
			c.Summary += "; their lines cannot be shown: " + text.Plain(err.Error())
		}
		if len(f.Files) > maxChanged {
			f.Files = f.Files[:maxChanged]
			c.Summary += fmt.Sprintf("; the first %d are shown, acp-agent diff lists all",
				maxChanged)
		}
		for _, file := range f.Files {
			lines := diffLines(hunks[file.Path], min(left, longText))
			left -= min(left, longText, len(hunks[file.Path]))
			note := ""
			if file.Binary {
				note = " binary"
			}
			if file.Named {
				note += ", by the session"
			}
			c.Files = append(c.Files, conversation.ChangedFile(text.Printable(file.Path),
				file.Added, file.Removed, note, lines))
		}
		shown = append(shown, c)
	}
	return shown, nil
}

// diffLines returns the lines of a diff that are shown, up to a limit in bytes.
func diffLines(hunks string, limit int) []string {
	if len(hunks) > limit {
		hunks = hunks[:strings.LastIndexByte(hunks[:limit], '\n')+1] +
			"… (acp-agent diff SESSION --patch prints all)\n"
	}
	return slices.Collect(strings.Lines(text.Plain(hunks)))
}
