package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type fileInfo struct {
	location
	Type     string // type of the entry that the path leads to: file, directory or other
	Size     int64  // in bytes
	Modified string // time of the last change, RFC 3339 in UTC
	Mode     string // permissions, as ls shows them
	Link     string // content of the link, if the path names a link
	Text     string // for a file: yes if it begins with UTF-8 text, otherwise no, or why not known
}

func (s *Set) info(ctx context.Context, in pathInput) (fileInfo, error) {
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
	if out.Type != "file" {
		return out, nil
	}
	out.Text, err = s.looksLikeText(ctx, in.Path)
	if refused, ok := errors.AsType[*workspace.RefusedError](err); ok {
		out.Text, err = "not known: "+refused.Why.Error(), nil
	}
	return out, err
}

// looksLikeText reports "yes" or "no" from the beginning of a file.
func (s *Set) looksLikeText(ctx context.Context, path string) (string, error) {
	_, err := s.walked.ReadText(ctx, path, workspace.TextOptions{MaxLines: 1, MaxBytes: binaryCheckSize,
		MaxWhole: 1})
	switch {
	case errors.As(err, new(*workspace.NotTextError)):
		return "no", nil
	case err != nil:
		return "", err
	default:
		return "yes", nil
	}
}

func (i fileInfo) String() string {
	s := fmt.Sprintf("%s\ntype: %s\nsize: %s\nmodified: %s\nmode: %s\n",
		i.location, i.Type, text.Count(int(i.Size), "byte", "bytes"), i.Modified, i.Mode)
	if i.Link != "" {
		s += "link to: " + text.Printable(i.Link) + "\n"
	}
	if i.Text != "" {
		s += "text: " + i.Text + "\n"
	}
	return s
}
