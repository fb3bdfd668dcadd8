package explore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// leftOut says what was passed over, so that an answer does not seem to be of everything; "" if nothing was.
func (t *turn) leftOut(s tools.Skipped) string {
	var parts []string
	if s.Binary > 0 {
		parts = append(parts, count(s.Binary, "binary file", "binary files"))
	}
	if s.Large > 0 {
		parts = append(parts, count(s.Large, "file", "files")+" over "+size(t.options.MaxFileSize))
	}
	if s.Unreadable > 0 {
		first := t.roots[s.First.Root.Index].show(s.First.Rel) + ": " + reason(s.First.Err)
		parts = append(parts, count(s.Unreadable, "entry", "entries")+" that could not be read ("+first+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out: " + strings.Join(parts, ", ") + "."
}

// reason is why something could not be opened, without the path, which the reader is told anyway.
func reason(err error) string {
	var outside *workspace.OutsideError
	var limit *workspace.LimitError
	var path *fs.PathError
	switch {
	case errors.As(err, &outside):
		return outside.Why
	case errors.As(err, &limit):
		return fmt.Sprintf("it lies more than %d %s", limit.Limit, limit.What)
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}
