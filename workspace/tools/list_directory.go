package tools

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type listDirectoryInput struct {
	Path string `json:"path,omitempty" jsonschema:"PATH (default)"`
}

type directoryList struct {
	location
	Entries []directoryEntry
	LeftOut skipped
	Cut     *truncation
}

type directoryEntry struct {
	Name string
	Type string // file, directory, link or other
	Size int64  // size of a file in bytes
	Root string // for a directory that is another root: the path of that root
}

func (s *Set) list(ctx context.Context, in listDirectoryInput) (directoryList, error) {
	dir, err := s.ws.OpenDir(cmp.Or(in.Path, "."))
	if err != nil {
		return directoryList{}, err
	}
	defer dir.Close()
	entries, err := dir.Entries(ctx)
	if err != nil {
		return directoryList{}, err
	}
	list := directoryList{location: locate(dir.Ref()), Entries: []directoryEntry{}}
	room := s.limits.bytes
	for _, e := range entries {
		if !utf8.ValidString(e.Name) {
			list.LeftOut.unnameable++
			continue
		}
		entry := entryOf(dir, e)
		room -= len(entry.Name) + len(entry.Root)
		switch {
		case len(list.Entries) == s.limits.entries:
			list.Cut = s.limits.reached("entries")
		case room < 0:
			list.Cut = s.limits.reached("bytes")
		}
		if list.Cut != nil {
			list.Cut.How = "Use find_files with a glob to find the other names."
			if n := len(list.Entries); n > 0 {
				list.Cut.After = list.Entries[n-1].Name
			}
			break
		}
		list.Entries = append(list.Entries, entry)
	}
	return list, nil
}

func entryOf(dir *workspace.Directory, e workspace.Entry) directoryEntry {
	entry := directoryEntry{Name: e.Name, Type: typeName(e.Type)}
	info, err := dir.Lstat(e.Name)
	switch {
	case err != nil:
	case e.Type.IsRegular():
		entry.Size = info.Size()
	case e.Type.IsDir() && info.Ref() == info.Ref().Root().Ref():
		entry.Root = info.Ref().Root().Dir.String()
	}
	return entry
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

func (l directoryList) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n", l.location, text.Count(len(l.Entries), "entry", "entries"))
	for _, e := range l.Entries {
		name := text.Printable(e.Name)
		switch {
		case e.Root != "":
			fmt.Fprintf(&b, "%s/ (folder %s)\n", name, text.Printable(e.Root))
		case e.Type == "directory":
			fmt.Fprintf(&b, "%s/\n", name)
		case e.Type == "file":
			fmt.Fprintf(&b, "%s (%s)\n", name, text.Count(int(e.Size), "byte", "bytes"))
		default:
			fmt.Fprintf(&b, "%s (%s)\n", name, e.Type)
		}
	}
	return b.String() + l.LeftOut.note() + l.Cut.note()
}
