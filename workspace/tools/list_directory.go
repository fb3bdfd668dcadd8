package tools

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

type listDirectoryInput struct {
	Path string `json:"path,omitempty" jsonschema:"the directory; absolute, or relative to the first root; default the first root"`
}

type directoryList struct {
	Place
	Entries []directoryEntry `json:"entries"`
	LeftOut *LeftOut         `json:"left_out,omitempty"`
	Cut     *Cut             `json:"cut,omitempty"`
}

type directoryEntry struct {
	Name string `json:"name"`
	Type string `json:"type" jsonschema:"file, directory, link or other"`
	Size int64  `json:"size,omitempty" jsonschema:"of a file, in bytes"`
	Root string `json:"root,omitempty" jsonschema:"for a directory that is another root: its path as such"`
}

func (s *Set) listDirectoryTool() Tool {
	return define(s, Tool{
		Name:        "list_directory",
		Title:       "List directory",
		Description: "List what is in one directory, sorted by name, with types and sizes. It does not go deeper: find_files does.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) { in.notEmpty("path") }, s.list)
}

func (s *Set) list(ctx context.Context, in listDirectoryInput) (directoryList, error) {
	if in.Path == "" {
		in.Path = "."
	}
	dir, err := s.ws.OpenDir(in.Path)
	if err != nil {
		return directoryList{}, err
	}
	defer dir.Close()
	entries, err := dir.Entries(ctx)
	if err != nil {
		return directoryList{}, err
	}
	list := directoryList{Place: shownPlace(dir.Ref()), Entries: []directoryEntry{}}
	room, unnameable := s.o.MaxBytes, 0
	for _, e := range entries {
		if !utf8.ValidString(e.Name) {
			unnameable++
			continue
		}
		one := s.entry(dir, e)
		room -= len(one.Name) + len(one.Root)
		limit, bound := "", 0
		switch {
		case len(list.Entries) == s.o.MaxEntries:
			limit, bound = "entries", s.o.MaxEntries
		case room < 0:
			limit, bound = "bytes", s.o.MaxBytes
		}
		if limit != "" {
			list.Cut = &Cut{Limit: limit, Bound: int64(bound), How: "Use find_files with a glob for names that are not shown."}
			if n := len(list.Entries); n > 0 {
				list.Cut.After = list.Entries[n-1].Name
			}
			break
		}
		list.Entries = append(list.Entries, one)
	}
	list.LeftOut = leftOut(Skipped{}, unnameable)
	return list, nil
}

func (s *Set) entry(dir *workspace.Directory, e workspace.Entry) directoryEntry {
	one := directoryEntry{Name: e.Name, Type: typeName(e.Type)}
	switch {
	case e.Type.IsRegular():
		if info, err := dir.Lstat(e.Name); err == nil {
			one.Size = info.Size()
		}
	case e.Type.IsDir():
		real := joinNative(dir.Ref().Real(), e.Name)
		for _, r := range s.ws.Opened() {
			if r.Real.String() == real {
				one.Root = r.Dir.String()
				break
			}
		}
	}
	return one
}

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

func (l directoryList) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (root %s), %s\n", Printable(l.Path), Printable(l.Root), count(len(l.Entries), "entry", "entries"))
	for _, e := range l.Entries {
		switch {
		case e.Root != "":
			fmt.Fprintf(&b, "%s/ (root %s)\n", Printable(e.Name), Printable(e.Root))
		case e.Type == "directory":
			fmt.Fprintf(&b, "%s/\n", Printable(e.Name))
		case e.Type == "file":
			fmt.Fprintf(&b, "%s (%s)\n", Printable(e.Name), count(int(e.Size), "byte", "bytes"))
		default:
			fmt.Fprintf(&b, "%s (%s)\n", Printable(e.Name), e.Type)
		}
	}
	return b.String() + l.LeftOut.note() + l.Cut.note()
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
