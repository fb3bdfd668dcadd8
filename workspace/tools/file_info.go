package tools

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

func (s *service) info(_ context.Context, in pathInput) (Result, error) {
	info, err := s.checked.Stat(in.Path)
	if err != nil {
		return Result{}, err
	}
	out := fmt.Sprintf("%s\ntype: %s\nsize: %s\nmodified: %s\nmode: %s\n",
		locate(info.Ref()), typeName(info.Mode()), text.Count(int(info.Size()), "byte", "bytes"),
		info.ModTime().UTC().Format(time.RFC3339Nano), info.Mode())
	itself, err := s.checked.Lstat(in.Path)
	if err == nil && itself.Mode()&fs.ModeSymlink != 0 {
		target, err := s.checked.Readlink(in.Path)
		if err != nil {
			return Result{}, err
		}
		out += "link to: " + text.Printable(representable(target)) + "\n"
	}
	return Result{Text: out}, nil
}
