package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

type findFilesInput struct {
	Glob    string `json:"glob,omitempty" jsonschema:"what names must match: * ? [a-z] {a,b} within a name, ** across directories; one without a slash is compared with the file name alone, any other with the path below where the search begins; default all files"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in; absolute, or relative to the first root; default every root"`
	Ignored string `json:"ignored,omitempty" jsonschema:"what becomes of files that git ignores"`
}

type foundFiles struct {
	Files   []Place  `json:"files"`
	Looked  int      `json:"files_looked_at"`
	LeftOut *LeftOut `json:"left_out,omitempty"`
	Cut     *Cut     `json:"cut,omitempty"`
}

func (s *Set) findFilesTool() Tool {
	return define(s, Tool{
		Name:  "find_files",
		Title: "Find files",
		Description: "Find files by name, in every root or in one directory, and all below. What git ignores is left out unless " +
			"ignored is include; links are not followed.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
	}, func(in *schema) {
		in.notEmpty("glob", "path")
		in.oneOf("ignored", "leave_out", "include")
	}, s.find)
}

func (s *Set) find(ctx context.Context, in findFilesInput) (foundFiles, error) {
	out := foundFiles{Files: []Place{}}
	look, err := s.look(in.Path, in.Glob, in.Ignored)
	if err != nil {
		return out, err
	}
	room, unnameable := s.o.MaxBytes, 0
	tally, cut, err := s.inTime(ctx, func(ctx context.Context) (Tally, error) {
		return look.Files(ctx, func(f File) error {
			place := f.Place()
			if !utf8.ValidString(place.Path) {
				unnameable++
				return nil
			}
			room -= len(place.Path) + len(place.Root)
			switch {
			case len(out.Files) == s.o.MaxEntries:
				out.Cut = &Cut{Limit: "entries", Bound: int64(s.o.MaxEntries)}
			case room < 0:
				out.Cut = &Cut{Limit: "bytes", Bound: int64(s.o.MaxBytes)}
			default:
				out.Files = append(out.Files, place)
				return nil
			}
			return fs.SkipAll
		})
	})
	if err != nil {
		return out, err
	}
	if out.Cut == nil {
		out.Cut = cut
	}
	if out.Cut != nil {
		out.Cut.How = "Give a narrower glob, or a path."
		if n := len(out.Files); n > 0 {
			out.Cut.After = out.Files[n-1].Path
		}
	}
	out.Looked, out.LeftOut = tally.Files, leftOut(tally.Skipped, unnameable)
	return out, nil
}

// look is a scan by the arguments of a tool.
func (s *Set) look(path, glob, ignored string) (Scan, error) {
	scan := Scan{Workspace: s.ws, Path: path, Ignored: workspace.LeaveIgnored, MaxFiles: s.o.MaxFiles}
	if ignored == "include" {
		scan.Ignored = workspace.KeepIgnored
	}
	var err error
	if glob != "" {
		scan.Only, err = NewGlob(glob)
	}
	return scan, err
}

var errTime = errors.New("out of time")

// inTime scans for as long as it may take, and says if the scan's own bounds cut it.
func (s *Set) inTime(ctx context.Context, scan func(context.Context) (Tally, error)) (Tally, *Cut, error) {
	inner, cancel := context.WithTimeoutCause(ctx, s.o.MaxTime, errTime)
	defer cancel()
	tally, err := scan(inner)
	switch {
	case err != nil && errors.Is(context.Cause(inner), errTime):
		return tally, &Cut{Limit: "time", Bound: int64(s.o.MaxTime / time.Millisecond)}, nil
	case err == nil && tally.Full:
		return tally, &Cut{Limit: "files", Bound: int64(s.o.MaxFiles)}, nil
	default:
		return tally, nil, err
	}
}

func (f foundFiles) text() string {
	var b strings.Builder
	root := ""
	for _, file := range f.Files {
		if file.Root != root {
			root = file.Root
			fmt.Fprintf(&b, "root %s:\n", Printable(root))
		}
		b.WriteString(Printable(file.Path) + "\n")
	}
	fmt.Fprintf(&b, "%s found, %d looked at\n", count(len(f.Files), "file", "files"), f.Looked)
	return b.String() + f.LeftOut.note() + f.Cut.note()
}
