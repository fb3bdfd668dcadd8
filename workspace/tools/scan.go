package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Bounds of a [Scan] where it names no others.
const (
	DefaultMaxFiles = 1_000_000
	DefaultMaxDepth = 100
)

// Scan goes through files of a workspace in a fixed order: root by root in the session's order (A20),
// the files of a directory before its subdirectories, both sorted. Several goroutines read ahead; what they
// found is given out one at a time. Links are left out: what they lead to is found where it is, if it
// is in scope. A file that several roots reach, because one lies in another, is given out once, for
// the first root in order whose rules do not ignore it.
type Scan struct {
	// Workspace is what is gone through.
	Workspace *workspace.Workspace
	// Path is the file or directory to begin at; a relative one starts at cwd. "" is every root. What it
	// names is looked at even if git ignores it.
	Path string
	// Ignored says what becomes of what git ignores. Default [workspace.KeepIgnored].
	Ignored workspace.IgnoredFiles
	// Only, if not nil, is what files must match, by their path below Path or their root.
	Only *Glob
	// MaxFiles is the most files that are looked at, whether they match Only or not. Default [DefaultMaxFiles].
	MaxFiles int
	// MaxDepth is how deep directories are entered. What is deeper counts as unreadable. Default [DefaultMaxDepth].
	MaxDepth int
	// Workers is how many goroutines read. Default GOMAXPROCS.
	Workers int
}

// Tally is what a [Scan] came by.
type Tally struct {
	// Files is how many files were looked at.
	Files int
	// Full says that there were more than MaxFiles.
	Full    bool
	Skipped Skipped
}

// Files calls each with every file, one at a time, from changing goroutines. An error of each ends the scan
// and is returned; for [fs.SkipAll] nil is. Others are the context's, and those of the workspace: of Path,
// and [workspace.ErrClosed].
func (s Scan) Files(ctx context.Context, each func(File) error) (Tally, error) {
	return s.run(ctx, nil, func(found Found) error { return each(found.File) })
}

// Search calls each with every file that has hits, as [Scan.Files] does with all.
func (s Scan) Search(ctx context.Context, l Lookup, each func(Found) error) (Tally, error) {
	l = l.withDefaults()
	return s.run(ctx, &l, each)
}

// errFull ends a scan at its bound of files.
var errFull = errors.New("no more files")

func (s Scan) run(ctx context.Context, l *Lookup, each func(Found) error) (Tally, error) {
	if s.MaxFiles == 0 {
		s.MaxFiles = DefaultMaxFiles
	}
	if s.MaxDepth == 0 {
		s.MaxDepth = DefaultMaxDepth
	}
	r := &run{scan: s, lookup: l, each: each, left: s.MaxFiles}
	r.scratch.New = func() any { return &scratch{collector: newCollector(l)} }
	var err error
	if s.Path == "" {
		err = r.roots(ctx)
	} else {
		err = r.path(ctx, s.Path)
	}
	var p *panicError
	switch {
	case errors.As(err, &p):
		panic(p.what)
	case err == errFull:
		r.tally.Full, err = true, nil
	case errors.Is(err, fs.SkipAll):
		err = nil
	}
	return r.tally, err
}

// roots goes through all roots. One that cannot be opened is counted.
func (r *run) roots(ctx context.Context) error {
	opened := r.scan.Workspace.Opened()
	if overlap(opened) {
		r.reached = make(map[string]bool)
	}
	for _, root := range opened {
		at := &start{root: root, top: root.Real.String()}
		err := r.tree(ctx, root.Dir.String(), at)
		if err != nil && !at.opened.Load() && ctx.Err() == nil && !errors.Is(err, workspace.ErrClosed) {
			r.tally.Skipped.unreadable(root, "", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path goes through what is at one path.
func (r *run) path(ctx context.Context, path string) error {
	info, err := r.scan.Workspace.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.one(ctx, path)
	}
	ref := info.Ref()
	return r.tree(ctx, path, &start{root: ref.Root(), top: ref.Real(), rel: ofTop(ref.Rel())})
}

// tree goes through a directory.
func (r *run) tree(ctx context.Context, path string, from *start) error {
	o := workspace.ScanOptions{Workers: r.scan.Workers, Ignored: r.scan.Ignored, MaxDepth: r.scan.MaxDepth}
	looking, stop := context.WithCancel(ctx) // ends what is looked at in vain once nothing more is wanted
	defer stop()
	return r.scan.Workspace.Scan(ctx, path, o, func(f *workspace.Folder) (deliver func() error) {
		from.opened.Store(true)
		// A panic goes to the caller's own goroutine.
		defer func() {
			if what := recover(); what != nil {
				err := &panicError{fmt.Sprintf("%v\n%s", what, debug.Stack())}
				deliver = func() error { return err }
			}
		}()
		b := r.look(looking, from, f)
		return func() error {
			err := r.emit(ctx, b)
			if err != nil {
				stop()
			}
			return err
		}
	})
}

// one looks at a file that was named.
func (r *run) one(ctx context.Context, path string) error {
	file, err := r.scan.Workspace.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	ref := file.Ref()
	dir, name := cutLast(ref.Rel())
	b := &batch{from: &start{root: ref.Root(), rel: dir}, place: PlaceOf(ref).parent(name), rel: dir}
	r.file(ctx, b, name, func() (*workspace.File, error) { return file, nil })
	return r.emit(ctx, b)
}

// overlap reports whether a root is another or lies in one. It saves work; a file's place in
// scope is never judged by it.
func overlap(roots []workspace.Root) bool {
	for i, a := range roots {
		for j, b := range roots {
			if i != j && strings.HasPrefix(joinNative(b.Real.String(), ""), joinNative(a.Real.String(), "")) {
				return true
			}
		}
	}
	return false
}

// panicError carries a panic to the caller's goroutine.
type panicError struct{ what string }

func (e *panicError) Error() string { return e.what }
