package changes

import "github.com/acp-agent/acp-agent/internal/history/conversation"

// Edit describes what a finished tool call did to a file.
type Edit struct {
	Path           string
	Kind           byte // M, D or R
	Added, Removed int
}

// maxDiff is the longest text whose changed lines are counted.
const maxDiff = 64 << 10

// Edits returns what finished calls did to files, with those of subagents.
func Edits(entries []conversation.Entry) (all []Edit) {
	for _, e := range entries {
		if e.Subagent != nil {
			all = append(all, Edits(e.Subagent.Entries)...)
		}
		if e.Kind != conversation.ToolCall || e.Call.Status != "completed" {
			continue
		}
		for _, d := range e.Call.Diffs {
			all = append(all, editBy(d))
		}
		kind, ok := map[string]byte{"edit": 'M', "delete": 'D', "move": 'R'}[e.Call.Kind]
		if !ok || len(e.Call.Diffs) > 0 {
			continue
		}
		for _, path := range e.Call.Paths {
			all = append(all, Edit{Path: path, Kind: kind})
		}
	}
	return all
}

// editBy returns what a diff changed. Of a long one it does not compare the text.
func editBy(d conversation.Diff) Edit {
	e := Edit{Path: d.Path, Kind: 'M'}
	if len(d.Old)+len(d.New) > maxDiff {
		return e
	}
	e.Added, e.Removed = conversation.Changed(d.Lines())
	return e
}
