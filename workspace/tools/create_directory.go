package tools

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

func (s *Set) createDirectory(ctx context.Context, in pathInput) (plain, error) {
	c, err := planDirectory(s.ws, in.Path)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return "", err
	}
	return plain(locate(c.Ref).String() + " was created\n" + createdAbove(c.Parents)), nil
}

// createdAbove returns the line about directories that were created above a file or directory, or
// "".
func createdAbove(dirs []workspace.Ref) string {
	if len(dirs) == 0 {
		return ""
	}
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, text.Printable(dir.Path()))
	}
	return "also created: " + strings.Join(paths, ", ") + "\n"
}
