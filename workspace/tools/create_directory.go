package tools

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type createdDirectory struct {
	location
	Parents []string // the directories that were created above it
}

func (s *Set) createDirectory(ctx context.Context,
	in pathInput) (createdDirectory, error) {
	c, err := planDirectory(s.ws, in.Path)
	if err == nil {
		c, err = s.apply(ctx, c)
	}
	if err != nil {
		return createdDirectory{}, err
	}
	return createdDirectory{locate(c.Ref), pathsOf(c.Parents)}, nil
}

func (c createdDirectory) String() string {
	return c.location.String() + " was created\n" + createdAbove(c.Parents)
}

// pathsOf returns the paths of directories as they are shown.
func pathsOf(dirs []workspace.Ref) []string {
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, text.Printable(dir.Path()))
	}
	return paths
}

// createdAbove returns the line about directories that were created above a file or directory, or
// "".
func createdAbove(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	return "also created: " + strings.Join(dirs, ", ") + "\n"
}
