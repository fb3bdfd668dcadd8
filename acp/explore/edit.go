package explore

import (
	"context"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// editSeparator is the line between the two texts of an edit that are not in code blocks.
const editSeparator = "======="

const editUsage = "To edit a file, give the text to replace, which must occur in it exactly once," +
	" and its replacement:\n\n" +
	"````text\n/edit PATH\n```\nold text\n```\n```\nnew text\n```\n````\n"

// editFile answers /edit.
func (t *commandTurn) editFile(ctx context.Context, p prompt) error {
	if p.blocks > 1 {
		return t.Write(oneBlockUsage)
	}
	replacement, ok := parseEdit(p.body)
	if p.line == "" || !ok {
		return t.Write(editUsage)
	}
	return t.change(ctx, change{verb: "Edit"}, p.line, func(old *string) (string, error) {
		if old == nil {
			return "", fs.ErrNotExist
		}
		return replacement.Apply(p.line, *old, t.limits.fileSize)
	})
}

// parseEdit reads the lines below /edit: two code blocks, or two texts with a separator between
// them. The last line end of a text is not part of it. ok is false if there is no old text, or if
// there is an empty line next to the separator: editors that treat a prompt as Markdown add such
// lines.
func parseEdit(body string) (r tools.Replacement, ok bool) {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	if first, rest, fenced := text.CutBlock(body); fenced {
		second, rest, fenced := text.CutBlock(rest)
		return tools.Replacement{Old: first, New: second},
			fenced && first != "" && strings.TrimSpace(rest) == ""
	}
	body = "\n" + strings.TrimSuffix(body, "\n") + "\n"
	before, after, found := strings.Cut(body, "\n"+editSeparator+"\n")
	r.Old, r.New = strings.TrimPrefix(before, "\n"), strings.TrimSuffix(after, "\n")
	beside := strings.HasSuffix(r.Old, "\n") || strings.HasPrefix(r.New, "\n")
	return r, found && r.Old != "" && !beside
}
