package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

type fileInfoInput struct {
	Path string `json:"path" jsonschema:"the file or directory; absolute, or relative to the first root"`
}

type fileInfo struct {
	Place
	Type     string `json:"type" jsonschema:"of what the path leads to: file, directory or other"`
	Size     int64  `json:"size" jsonschema:"in bytes"`
	Modified string `json:"modified" jsonschema:"RFC 3339, in UTC"`
	Mode     string `json:"mode" jsonschema:"permissions, as ls writes them"`
	Link     string `json:"link_target,omitempty" jsonschema:"what the link holds, if the path is that of a link"`
	Text     string `json:"text,omitempty" jsonschema:"for a file: yes if it begins like UTF-8 text, else no"`
}

func (s *Set) fileInfoTool() Tool {
	return define(s, Tool{
		Name:        "file_info",
		Title:       "File information",
		Description: "Tell what is at a path: type, size, time of the last change, where a link leads, which root owns it.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) { in.notEmpty("path") }, s.info)
}

func (s *Set) info(ctx context.Context, in fileInfoInput) (fileInfo, error) {
	info, err := s.ws.Stat(in.Path)
	if err != nil {
		return fileInfo{}, err
	}
	out := fileInfo{
		Place: shownPlace(info.Ref()), Type: typeName(info.Mode()), Size: info.Size(),
		Modified: info.ModTime().UTC().Format(time.RFC3339Nano), Mode: info.Mode().String(),
	}
	itself, err := s.ws.Lstat(in.Path)
	if err == nil && itself.Mode()&fs.ModeSymlink != 0 {
		target, err := s.ws.Readlink(in.Path)
		if err != nil {
			return fileInfo{}, err
		}
		out.Link = shown(target)
	}
	if out.Type == "file" {
		out.Text, err = s.looksLikeText(ctx, in.Path)
	}
	return out, err
}

// looksLikeText reads the beginning of a file.
func (s *Set) looksLikeText(ctx context.Context, path string) (string, error) {
	_, err := s.ws.ReadText(ctx, path, workspace.TextOptions{MaxLines: 1, MaxBytes: sniffed, MaxWhole: 1})
	var no *workspace.NotTextError
	switch {
	case errors.As(err, &no):
		return "no", nil
	case err != nil:
		return "", err
	default:
		return "yes", nil
	}
}

// shownPlace is the place of what a reference names, such that JSON can hold it.
func shownPlace(ref workspace.Ref) Place {
	p := PlaceOf(ref)
	return Place{shown(p.Path), p.Root}
}

func (i fileInfo) text() string {
	text := fmt.Sprintf("%s (root %s)\ntype: %s\nsize: %s\nmodified: %s\nmode: %s\n",
		Printable(i.Path), Printable(i.Root), i.Type, count(int(i.Size), "byte", "bytes"), i.Modified, i.Mode)
	if i.Link != "" {
		text += "link to: " + Printable(i.Link) + "\n"
	}
	if i.Text != "" {
		text += "text: " + i.Text + "\n"
	}
	return text
}
