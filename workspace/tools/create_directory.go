package tools

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

func (s *service) createDirectory(ctx context.Context, in pathInput) (Result, error) {
	c, err := s.planDirectory(in.Path)
	if err != nil {
		return Result{}, err
	}
	return s.applyPlanned(ctx, c)
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
