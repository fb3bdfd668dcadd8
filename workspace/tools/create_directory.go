package tools

import (
	"context"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// planDirectory plans to create a directory.
func (s *service) planDirectory(_ context.Context, in pathInput) (Change, error) {
	ref, parents, err := s.target(CreateDirectory, in.Path)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: CreateDirectory, Asked: in.Path, Ref: ref, Parents: parents,
		What: "directory", Alike: lookAlike(s.checked, in.Path, looksExactly)}, nil
}

// createdAbove returns the line about directories that were created above a file or directory, or
// "".
func createdAbove(dirs []workspace.Ref) string {
	if len(dirs) == 0 {
		return ""
	}
	return "also created: " + text.JoinFunc(dirs, ", ", func(dir workspace.Ref) string {
		return text.Printable(dir.Path())
	}) + "\n"
}
