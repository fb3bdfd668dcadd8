package explore

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// skipped counts what was passed over, so that an answer does not seem to be of everything.
type skipped struct {
	binary, large, failed int
	// first is the first of failed, with the reason.
	first string
}

// unreadable counts something that could not be opened or read. name is as answers write it.
func (s *skipped) unreadable(name string, err error) {
	if s.failed == 0 {
		s.first = name + ": " + reason(err)
	}
	s.failed++
}

func (s *skipped) add(other skipped) {
	s.binary += other.binary
	s.large += other.large
	if s.failed == 0 {
		s.first = other.first
	}
	s.failed += other.failed
}

// describe says what was passed over, "" if nothing was.
func (s *skipped) describe(maxFileSize int64) string {
	var parts []string
	if s.binary > 0 {
		parts = append(parts, count(s.binary, "binary file", "binary files"))
	}
	if s.large > 0 {
		parts = append(parts, count(s.large, "file", "files")+" over "+size(maxFileSize))
	}
	if s.failed > 0 {
		parts = append(parts, count(s.failed, "entry", "entries")+" that could not be read ("+s.first+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out: " + strings.Join(parts, ", ") + "."
}

// reason is why something could not be opened, without the path, which the reader is told anyway.
func reason(err error) string {
	var outside *workspace.OutsideError
	var path *fs.PathError
	switch {
	case errors.As(err, &outside):
		return outside.Why
	case errors.As(err, &path):
		return path.Err.Error()
	default:
		return err.Error()
	}
}
