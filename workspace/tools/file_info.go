package tools

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

type fileInfo struct {
	location
	Type     string // type of the entry that the path leads to: file, directory or other
	Size     int64  // in bytes
	Modified string // time of the last change, RFC 3339 in UTC
	Mode     string // permissions, as ls shows them
	Link     string // content of the link, if the path names a link
}

func (s *Set) info(_ context.Context, in pathInput) (fileInfo, error) {
	info, err := s.ws.Stat(in.Path)
	if err != nil {
		return fileInfo{}, err
	}
	out := fileInfo{
		location: locate(info.Ref()), Type: typeName(info.Mode()), Size: info.Size(),
		Modified: info.ModTime().UTC().Format(time.RFC3339Nano), Mode: info.Mode().String(),
	}
	itself, err := s.ws.Lstat(in.Path)
	if err == nil && itself.Mode()&fs.ModeSymlink != 0 {
		target, err := s.ws.Readlink(in.Path)
		if err != nil {
			return fileInfo{}, err
		}
		out.Link = representable(target)
	}
	return out, nil
}

func (i fileInfo) String() string {
	s := fmt.Sprintf("%s\ntype: %s\nsize: %s\nmodified: %s\nmode: %s\n",
		i.location, i.Type, text.Count(int(i.Size), "byte", "bytes"), i.Modified, i.Mode)
	if i.Link != "" {
		s += "link to: " + text.Printable(i.Link) + "\n"
	}
	return s
}
