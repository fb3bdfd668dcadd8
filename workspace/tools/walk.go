package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	defaultMaxFiles    = 1_000_000
	defaultMaxDepth    = 100 // deeper directories count as unreadable
	defaultMaxFileSize = 8 << 20
)

// Walk visits files of a workspace in a fixed order: root by root, the files of a directory before
// its subdirectories, both sorted by name. Several goroutines read ahead, but results are delivered
// one at a time. Links are not followed: a file in scope is visited at its own path. A root that
// lies in another is visited in its own turn only, and of several with one real path the first.
type Walk struct {
	Workspace *workspace.Workspace
	// Path is the file or directory to visit, even if git ignores it; a relative path starts at
	// cwd. "" means every root.
	Path string
	// Ignored says what to do with files that git ignores. Default [workspace.KeepIgnored].
	Ignored workspace.IgnoredFiles
	// Only, if not nil, must match the path of a file relative to Path or its root.
	Only *Glob
	// Exclude leaves out files and directories whose path relative to Path or its root matches one
	// of the globs.
	Exclude []*Glob
	// MaxFiles is the most files that are visited in each root, whether they match Only or not.
	// Default 1,000,000.
	MaxFiles int

	maxDepth int // default defaultMaxDepth
}

// Tally counts what a [Walk] visited.
type Tally struct {
	// Files is the number of files visited.
	Files int
	// Roots says how much of each root was visited, by index. It is nil if the walk has a Path.
	Roots []Coverage
	// Full reports whether a root has more than MaxFiles.
	Full    bool
	Skipped Skipped
}

// Coverage says how much of a root a [Walk] visited.
type Coverage int

const (
	// NotVisited means that the walk ended before the root.
	NotVisited Coverage = iota
	// Stopped means that the walk ended within the root.
	Stopped
	// Limited means that the root has more than MaxFiles.
	Limited
	// Incomplete means that files or directories were left out because of their size, or because
	// they could not be read or are the system's.
	Incomplete
	// Complete means that every file was visited.
	Complete
)

// Skipped counts what a [Walk] left out.
type Skipped struct {
	// Binary counts files that are not text: those with a NUL at the beginning, and those that
	// match but are neither UTF-8 nor Windows-1252. UTF-16 with a byte order mark is text.
	Binary int
	// Large counts files above the size limit that could not be searched in parts, because of long
	// lines or an encoding other than UTF-8.
	Large int
	// Unreadable counts files and directories that could not be opened or read, and First is the
	// first of them.
	Unreadable int
	First      Failure
	// Refused counts files that the check of the workspace refuses, by its error.
	Refused map[string]int
	// Ignored counts files and directories that git ignores.
	Ignored int
	// System are the paths of directories that hold the state of the system, not files, such as
	// /proc.
	System []string

	unnameable int // names that are not Unicode text, which JSON cannot represent
}

// incomplete returns the number of files and directories that might have had matches.
func (s *Skipped) incomplete() int {
	n := s.Large + s.Unreadable + len(s.System)
	for _, refused := range s.Refused {
		n += refused
	}
	return n
}

// Refusals says how many files the check of the workspace refuses, and why, "" for none.
func (s *Skipped) Refusals() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(s.Refused)) {
		parts = append(parts, text.Count(s.Refused[why], "file", "files")+" ("+why+")")
	}
	return strings.Join(parts, ", ")
}

// Failure describes a file or directory that could not be opened or read.
type Failure struct {
	At  workspace.Ref
	Err error
}

func (s *Skipped) unreadable(at workspace.Ref, err error) {
	if refused, ok := errors.AsType[*workspace.RefusedError](err); ok {
		if s.Refused == nil {
			s.Refused = make(map[string]int)
		}
		s.Refused[refused.Why.Error()]++
		return
	}
	if s.Unreadable == 0 {
		s.First = Failure{at, err}
	}
	s.Unreadable++
}

// Found is a file that a [Walk] visits.
type Found struct {
	// Lines are the matching lines and the lines around them, sorted by number.
	Lines []Line

	in   *folder
	name string
}

// Ref returns where the file is.
func (f Found) Ref() workspace.Ref { return f.in.dir.Child(f.name) }

var (
	// errFull stops a walk that has visited MaxFiles.
	errFull = errors.New("too many files")
	// errStop stops a walk whose callback returned fs.SkipAll.
	errStop = errors.New("stopped")
)

// Run calls each with every file or, if o is not nil, with every file that has matches, one at a
// time. An error of each stops the walk and is returned, except that for [fs.SkipAll] Run returns
// nil. Other errors are those of ctx and of the workspace.
func (w Walk) Run(ctx context.Context, o *SearchOptions, each func(Found) error) (Tally, error) {
	w.MaxFiles = cmp.Or(w.MaxFiles, defaultMaxFiles)
	w.maxDepth = cmp.Or(w.maxDepth, defaultMaxDepth)
	if o != nil {
		o = o.withDefaults()
	}
	r := &run{walk: w, options: o, each: each, left: w.MaxFiles}
	r.buffers.New = func() any { return &buffers{collector: newCollector(o)} }
	var err error
	if w.Path == "" {
		err = r.everyRoot(ctx)
	} else {
		err = r.path(ctx, w.Path)
	}
	switch err {
	case errFull: // of a path
		r.tally.Full, err = true, nil
	case errStop:
		err = nil
	}
	return r.tally, err
}

// run is one execution of a [Walk].
type run struct {
	walk    Walk
	options *SearchOptions // nil to list files without searching them
	each    func(Found) error
	buffers sync.Pool // of *buffers

	// The following are only used while results are delivered, one at a time.
	tally  Tally
	left   int  // files that may still be visited in this root
	opened bool // whether anything of this root was visited

	roots map[string]bool // the real paths of all roots, if they are walked
}

// buffers are what searching one file needs.
type buffers struct {
	text []byte
	*collector
}

// folder is the result of visiting a directory, or part of a large one.
type folder struct {
	*workspace.Folder
	dir   workspace.Ref // where it is
	top   string        // the path of the start of the walk
	files int           // how many files it has
	found []result
}

// result is a file of a folder that matches.
type result struct {
	Found
	index int // among the files of the folder
	err   error
}

// everyRoot walks all roots. A root that cannot be opened is counted as unreadable.
func (r *run) everyRoot(ctx context.Context) error {
	opened := r.walk.Workspace.Opened()
	r.tally.Roots = make([]Coverage, len(opened))
	r.roots = make(map[string]bool, len(opened))
	for _, root := range opened {
		r.roots[root.Real.String()] = true
	}
	for i, root := range opened {
		first := slices.IndexFunc(opened, func(o workspace.Root) bool { return o.Real == root.Real })
		if first < i {
			r.tally.Roots[i] = r.tally.Roots[first]
			continue
		}
		r.tally.Roots[i] = Stopped
		before := r.tally.Skipped.incomplete()
		r.left, r.opened = r.walk.MaxFiles, false
		err := r.tree(ctx, root.Dir.String(), root.Dir.String())
		switch {
		case err == errFull:
			r.tally.Roots[i], r.tally.Full = Limited, true
			continue
		case err != nil && !r.opened && ctx.Err() == nil && !errors.Is(err, workspace.ErrClosed):
			r.tally.Skipped.unreadable(root.Ref(), err)
		case err != nil:
			return err
		}
		r.tally.Roots[i] = Complete
		if r.tally.Skipped.incomplete() > before {
			r.tally.Roots[i] = Incomplete
		}
	}
	return nil
}

// path scans the file or directory at path.
func (r *run) path(ctx context.Context, path string) error {
	info, err := r.walk.Workspace.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.tree(ctx, path, info.Ref().Path())
	}
	file, err := r.walk.Workspace.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	f := &folder{Folder: &workspace.Folder{}, dir: file.Ref().Parent()}
	r.file(ctx, f, file.Ref().Name(), func() (*workspace.File, error) { return file, nil })
	return r.deliver(ctx, f)
}

// tree walks a directory and everything below it. top is how its path is shown.
func (r *run) tree(ctx context.Context, path, top string) error {
	o := workspace.WalkOptions{Ignored: r.walk.Ignored, MaxDepth: r.walk.maxDepth, Exclude: r.excludes}
	visiting, stop := context.WithCancel(ctx) // ends visits whose results are no longer wanted
	defer stop()
	return r.walk.Workspace.Walk(ctx, path, o, func(in *workspace.Folder) (deliver func() error) {
		f := &folder{Folder: in, dir: in.Ref(), top: top}
		for _, e := range in.Entries {
			if e.Type.IsRegular() && visiting.Err() == nil {
				r.file(visiting, f, e.Name, func() (*workspace.File, error) { return in.Open(e) })
			}
		}
		return func() error {
			err := r.deliver(ctx, f)
			if err != nil {
				stop()
			}
			return err
		}
	})
}

// excludes reports whether to leave out an entry of a folder, and what is below it.
func (r *run) excludes(in *workspace.Folder, e workspace.Entry) bool {
	return slices.ContainsFunc(r.walk.Exclude,
		func(g *Glob) bool { return g.match(in.Below, e.Name) }) ||
		len(r.roots) > 1 && e.Type.IsDir() && r.roots[joinNative(in.Ref().Real(), e.Name)]
}

// file visits a file of a folder.
func (r *run) file(ctx context.Context, f *folder, name string,
	open func() (*workspace.File, error)) {
	found := result{Found: Found{in: f, name: name}, index: f.files}
	f.files++
	if r.walk.Only != nil && !r.walk.Only.match(f.Below, name) {
		return
	}
	if r.options != nil {
		found.Lines, found.err = r.search(ctx, open)
		if found.err == nil && len(found.Lines) == 0 {
			return
		}
	}
	f.found = append(f.found, found)
}

// search returns the matching lines of a file.
func (r *run) search(ctx context.Context, open func() (*workspace.File, error)) ([]Line, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := r.buffers.Get().(*buffers)
	defer r.buffers.Put(b)
	b.text, err = readAll(ctx, file, r.options.MaxFileSize, b.text)
	if errors.Is(err, errLarge) {
		return b.searchParts(ctx, r.options, file)
	}
	if err != nil {
		return nil, err
	}
	text := bytes.TrimPrefix(b.text, []byte(bom))
	if markOf(text) != utf8Text { // others may be searched as they are
		var ok bool
		if text, _, ok = decode(text); !ok {
			return nil, errBinary
		}
	}
	hits, err := b.search(ctx, text)
	if errors.Is(err, errBinary) {
		if decoded, _, ok := decode(text); ok {
			text = decoded
			hits, err = b.search(ctx, text)
		}
	}
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	return r.options.lines(text, hits), nil
}

// deliver delivers the results of a folder, up to the limit of files.
func (r *run) deliver(ctx context.Context, f *folder) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.opened = true
	skipped := &r.tally.Skipped
	if f.Err != nil {
		skipped.unreadable(f.dir, f.Err)
	}
	skipped.Ignored += f.Ignored
	for _, name := range f.System {
		skipped.System = append(skipped.System, joinNative(f.dir.Path(), name))
	}
	visited := min(f.files, r.left)
	r.left -= visited
	r.tally.Files += visited
	for _, found := range f.found {
		if found.index >= visited {
			break
		}
		if err := r.deliverFile(found); err != nil {
			return err
		}
	}
	if visited < f.files {
		return errFull
	}
	return nil
}

// deliverFile delivers a file, or counts why it was left out.
func (r *run) deliverFile(found result) error {
	switch err := found.err; {
	case err == nil:
		err = r.each(found.Found)
		if errors.Is(err, fs.SkipAll) {
			err = errStop
		}
		return err
	case errors.Is(err, errBinary):
		r.tally.Skipped.Binary++
	case errors.Is(err, errLarge):
		r.tally.Skipped.Large++
	case errors.Is(err, workspace.ErrClosed):
		return err
	default:
		r.tally.Skipped.unreadable(found.Ref(), err)
	}
	return nil
}

const (
	// binaryCheckSize is the length of the beginning of a file that must not contain a NUL, in
	// bytes.
	binaryCheckSize = 8 << 10
	// firstRead is the number of bytes that are read before the size of the file matters.
	firstRead = 64 << 10
)

var (
	errBinary = errors.New("it is a binary file")
	errLarge  = errors.New("it is too large")
)

// readAll reads a file of at most limit bytes into buffer, which it grows as needed. The error is
// errLarge, errBinary, the context's, or a read error. The caller must check that the text is
// UTF-8.
func readAll(ctx context.Context, file *workspace.File, limit int64,
	buffer []byte) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], firstRead)[:firstRead]
	for n := 0; ; {
		if ctx.Err() != nil {
			return buffer[:n], context.Cause(ctx)
		}
		size, err := io.ReadFull(file, buffer[n:])
		first, ended := n == 0, err == io.EOF || err == io.ErrUnexpectedEOF
		n += size
		switch {
		case err != nil && !ended:
			return buffer[:n], err
		case int64(n) > limit:
			return buffer[:n], errLarge
		case first && markOf(buffer[:n]) == utf8Text &&
			bytes.IndexByte(buffer[:min(n, binaryCheckSize)], 0) >= 0:
			return buffer[:n], errBinary
		case ended:
			return buffer[:n], nil
		case first: // which may save reading the rest
			if info, err := file.Stat(); err != nil || info.Size() > limit {
				return buffer[:n], cmp.Or(err, errLarge)
			}
		}
		buffer = slices.Grow(buffer, n)[:2*n]
	}
}
