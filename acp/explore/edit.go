package explore

import (
	"context"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// editSeparator is the line between the two texts of an edit.
const editSeparator = "======="

const editUsage = "To edit a file, give the text to replace, which must occur in it exactly once," +
	" and its replacement:\n\n" +
	"```text\n/edit PATH\nold text\n" + editSeparator + "\nnew text\n```\n"

// editFile answers /edit.
func (t *turn) editFile(ctx context.Context, p prompt) error {
	if p.blocks > 1 {
		return t.write(oneBlockUsage)
	}
	replacement, ok := parseEdit(p.body)
	if p.line == "" || !ok {
		return t.write(editUsage)
	}
	return t.change(ctx, change{verb: "Edit"}, p.line, func(old *string) (string, error) {
		if old == nil {
			return "", fs.ErrNotExist
		}
		return replacement.Apply(p.line, *old, t.limits.fileSize)
	})
}

// parseEdit splits the lines below /edit at the first separator. The line end before it, and the
// last one, do not belong to the texts. ok is false if there is no separator or no old text.
func parseEdit(body string) (r tools.Replacement, ok bool) {
	body = "\n" + strings.TrimSuffix(strings.ReplaceAll(body, "\r\n", "\n"), "\n") + "\n"
	before, after, found := strings.Cut(body, "\n"+editSeparator+"\n")
	r.Old, r.New = strings.TrimPrefix(before, "\n"), strings.TrimSuffix(after, "\n")
	return r, found && r.Old != ""
}
