package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

type findFilesInput struct {
	Glob string `json:"glob,omitempty"`
	Path string `json:"path,omitempty"`
	fileFilter
}

// fileFilter holds the arguments that exclude files from a walk.
type fileFilter struct {
	Exclude []string `json:"exclude,omitempty"`
	Ignored string   `json:"ignored,omitempty"`
}

// maxExcluded bounds the globs that are matched with every path.
const maxExcluded = 100

func (fileFilter) constrain(in *schema) {
	in.describe("exclude", "globs to omit")
	in.describe("ignored", "files git ignores; default leave_out")
	in.atMostItems("exclude", maxExcluded)
	in.oneOf("ignored", "leave_out", "include")
}

type foundFiles struct {
	Glob    string
	Files   []location
	Visited int
	LeftOut *omissions
	Cut     *truncation
}

func findFilesTool() definition {
	return define(Tool{
		Name:        "find_files",
		Description: "Find files by name, in every folder. Paths are relative to the folder.",
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		Kind:        KindSearch,
	}, func(in findFilesInput) string {
		return about("Find", in.Glob, "files") + within(in.Path)
	}, func(in *schema) {
		in.notEmpty("path")
		in.describe("glob", "*.go, or with a slash the path in the searched directory: "+
			"src/**/*.{ts,tsx}")
		in.describe("path", "a directory, "+pathText+"; default every folder")
		fileFilter{}.constrain(in)
	}, (*Set).find)
}

func (s *Set) find(ctx context.Context, in findFilesInput) (foundFiles, error) {
	out := foundFiles{Glob: in.Glob, Files: []location{}}
	walk, err := s.newWalk(in.Path, in.Glob, in.fileFilter)
	if err != nil {
		return out, err
	}
	room, unnameable := s.limits.bytes, 0
	tally, stopped, err := s.withinTime(ctx, func(ctx context.Context) (Tally, error) {
		return walk.Files(ctx, func(f File) error {
			location := f.location()
			if !utf8.ValidString(location.Path) {
				unnameable++
				return nil
			}
			root := ""
			if n := len(out.Files); n > 0 {
				root = out.Files[n-1].Root
			}
			if room -= len(location.below()); location.Root != root {
				room -= len(location.Root)
			}
			switch {
			case len(out.Files) == s.limits.entries:
				out.Cut = s.limits.reached("entries")
			case room < 0:
				out.Cut = s.limits.reached("bytes")
			default:
				out.Files = append(out.Files, location)
				return nil
			}
			return fs.SkipAll
		})
	})
	if err != nil {
		return out, err
	}
	if out.Cut = cmp.Or(out.Cut, stopped); out.Cut != nil {
		out.Cut.How = "Use a narrower glob, or a path."
		out.Cut.Roots = s.unfinished(tally)
		if n := len(out.Files); n > 0 {
			out.Cut.After = out.Files[n-1].Path
		}
	}
	out.Visited, out.LeftOut = tally.Files, omitted(tally.Skipped, unnameable)
	return out, nil
}

// newWalk returns the walk that the arguments of a tool describe.
func (s *Set) newWalk(path, glob string, filter fileFilter) (Walk, error) {
	walk := Walk{Workspace: s.walked, Path: path, Ignored: workspace.LeaveIgnored,
		MaxFiles: s.limits.files}
	if filter.Ignored == "include" {
		walk.Ignored = workspace.KeepIgnored
	}
	for _, pattern := range filter.Exclude {
		// which marks directories in .gitignore
		excluded, err := NewGlob(strings.TrimSuffix(pattern, "/"))
		if err != nil {
			return walk, err
		}
		walk.Exclude = append(walk.Exclude, excluded)
	}
	var err error
	if glob != "" {
		walk.Only, err = NewGlob(glob)
	}
	return walk, err
}

var errTimeLimit = errors.New("the time limit was reached")

// withinTime calls walk with the time limit. If the limit of time or of files truncated the walk,
// it returns that truncation, otherwise nil.
func (s *Set) withinTime(ctx context.Context,
	walk func(context.Context) (Tally, error)) (Tally, *truncation, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.time, errTimeLimit)
	defer cancel()
	tally, err := walk(limited)
	switch {
	case err != nil && errors.Is(context.Cause(limited), errTimeLimit):
		return tally, s.limits.reached("time"), nil
	case err == nil && tally.Full:
		return tally, s.limits.reached("files"), nil
	default:
		return tally, nil, err
	}
}

// unfinished returns the roots that a walk did not visit to the end.
func (s *Set) unfinished(tally Tally) []string {
	var paths []string
	for i, coverage := range tally.Roots {
		if coverage < Incomplete {
			paths = append(paths, representable(s.ws.Roots().At(i).String()))
		}
	}
	return paths
}

// GlobHint returns a line about brackets in a glob that has found nothing, "" for other globs.
func GlobHint(glob string) string {
	open := strings.IndexByte(glob, '[')
	if open < 0 || open > 0 && glob[open-1] == '\\' {
		return ""
	}
	set := glob[open : open+setEnd(glob[open:])+1]
	return fmt.Sprintf("[%s stands for one of these characters: write \\%s\\] for a name with brackets]\n",
		text.Printable(set), text.Printable(strings.TrimSuffix(set, "]")))
}

func (f foundFiles) String() string {
	var b strings.Builder
	root := ""
	for _, file := range f.Files {
		if file.Root != root {
			root = file.Root
			fmt.Fprintf(&b, "in folder %s:\n", text.Printable(root))
		}
		b.WriteString(text.Printable(file.below()) + "\n")
	}
	fmt.Fprintf(&b, "found %s, visited %d\n", text.Count(len(f.Files), "file", "files"), f.Visited)
	if len(f.Files) == 0 {
		b.WriteString(GlobHint(f.Glob))
	}
	return b.String() + f.LeftOut.note() + f.Cut.note()
}
