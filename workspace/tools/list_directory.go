package tools

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type listDirectoryInput struct {
	Path string `json:"path,omitempty" jsonschema:"{path} (default)"`
}

func (s *service) list(ctx context.Context, in listDirectoryInput) (Result, error) {
	dir, err := s.checked.OpenDir(cmp.Or(in.Path, "."))
	if err != nil {
		return Result{}, err
	}
	defer dir.Close()
	entries, err := dir.Entries(ctx)
	if err != nil {
		return Result{}, err
	}
	p := page{bytes: s.limits.bytes, unit: "entries", most: s.limits.entries}
	var leftOut skipped
	var cut *truncation
	for _, e := range entries {
		if !utf8.ValidString(e.Name) {
			leftOut.unnameable++
			continue
		}
		if cut = p.add(1, e.Name, text.Printable(e.Name)+typeOf(dir, e)+"\n"); cut != nil {
			cut.After, cut.How = p.last, "Use find_files with a glob to find the other names."
			break
		}
	}
	return Result{Text: fmt.Sprintf("%s, %s\n%s", locate(dir.Ref()),
		text.Count(p.count, "entry", "entries"), p.String()) + leftOut.note() + cut.note()}, nil
}

// typeOf returns what the list says behind a name.
func typeOf(dir *workspace.Directory, e workspace.Entry) string {
	info, err := dir.Lstat(e.Name)
	switch {
	case e.Type.IsDir() && err == nil && info.Ref() == info.Ref().Root().Ref():
		return "/ (folder " + text.Printable(info.Ref().Root().Dir.String()) + ")"
	case e.Type.IsDir():
		return "/"
	case e.Type.IsRegular() && err == nil:
		return " (" + text.Count(int(info.Size()), "byte", "bytes") + ")"
	default:
		return " (" + typeName(e.Type) + ")"
	}
}

// typeName returns "file", "directory", "link" or "other".
func typeName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "link"
	default:
		return "other"
	}
}
