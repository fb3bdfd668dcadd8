package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
// one at a time. Links are not followed: a file in scope is visited at its own path. A file that
// several roots contain, because one lies in another, is visited once, for the first root whose
// ignore rules allow it.
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
	// Progress, if not nil, is called from time to time with the tally so far, never at the same
	// time as another callback. An error stops the walk and is returned.
	Progress func(Tally) error

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
	// Root is the root that was scanned, and Rel the slash-separated path in it, "" for the root
	// itself.
	Root workspace.Root
	Rel  string
	Err  error
}

func (s *Skipped) unreadable(root workspace.Root, rel string, err error) {
	if refused, ok := errors.AsType[*workspace.RefusedError](err); ok {
		if s.Refused == nil {
			s.Refused = make(map[string]int)
		}
		s.Refused[refused.Why.Error()]++
		return
	}
	if s.Unreadable == 0 {
		s.First = Failure{root, rel, err}
	}
	s.Unreadable++
}

// File is a file that a [Walk] visits.
type File struct {
	in   *folder
	name string
}

// Root returns the root that was scanned, which need not be the root that owns the file.
func (f File) Root() workspace.Root { return f.in.start.root }

// Rel returns the slash-separated path in that root.
func (f File) Rel() string { return joinSlash(f.in.rel, f.name) }

// Path returns the absolute path, which begins with the client's spelling of that root.
func (f File) Path() string {
	path := f.Root().Dir.String()
	if f.in.rel != "" {
		path = joinNative(path, filepath.FromSlash(f.in.rel))
	}
	return joinNative(path, f.name)
}

// location returns where the file is, with the root that owns it.
func (f File) location() location {
	return location{Path: joinNative(f.in.path, f.name), Root: f.in.root}
}

// joinSlash joins slash-separated paths, each of which may be "".
func joinSlash(dir, name string) string {
	if dir == "" || name == "" {
		return dir + name
	}
	return dir + "/" + name
}

// Files calls each with every file, one at a time, from changing goroutines. An error of each stops
// the walk and is returned, except that for [fs.SkipAll] Files returns nil. Other errors are those
// of ctx and of the workspace.
func (w Walk) Files(ctx context.Context, each func(File) error) (Tally, error) {
	return w.run(ctx, nil, func(found Found) error { return each(found.File) })
}

// Search calls each with every file that has matches, as [Walk.Files] does with all files.
func (w Walk) Search(ctx context.Context, o SearchOptions, each func(Found) error) (Tally, error) {
	o = o.withDefaults()
	return w.run(ctx, &o, each)
}

var (
	// errFull stops a walk that has visited MaxFiles.
	errFull = errors.New("too many files")
	// errStop stops a walk whose callback returned fs.SkipAll.
	errStop = errors.New("stopped")
)

func (w Walk) run(ctx context.Context, o *SearchOptions, each func(Found) error) (Tally, error) {
	w.MaxFiles = cmp.Or(w.MaxFiles, defaultMaxFiles)
	w.maxDepth = cmp.Or(w.maxDepth, defaultMaxDepth)
	r := &run{walk: w, options: o, each: each, left: w.MaxFiles}
	r.buffers.New = func() any { return &buffers{collector: newCollector(o)} }
	var err error
	if w.Path == "" {
		err = r.roots(ctx)
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
	tally Tally
	left  int // files that may still be visited in this root
	// visited holds the real paths of visited files if roots overlap, so that a file may be found
	// twice; otherwise it is nil.
	visited map[string]bool
}

// buffers are what searching one file needs.
type buffers struct {
	text []byte
	*collector
}

// start is the directory or file at which a walk of one root or path begins.
type start struct {
	root workspace.Root
	// path is the path, real the real path, and rel the slash-separated path in the root, "" for
	// the root itself.
	path, real, rel string
	opened          atomic.Bool
}

// below returns the slash-separated path of a directory relative to the start, "" for the start
// itself.
func (s *start) below(real string) string {
	rel, _ := strings.CutPrefix(real, s.real)
	return filepath.ToSlash(strings.TrimLeft(rel, string(filepath.Separator)))
}

// folder is the result of visiting a directory, or part of a large one.
type folder struct {
	start *start
	// path, root and real are its path, the root that owns it, and its real path.
	path, root, real string
	// rel is its slash-separated path in the root of start, and below that relative to the start;
	// "" for the top.
	rel, below string
	err        error    // why it could not be read
	files      int      // how many files it has
	names      []string // of them, if run.visited is used
	found      []result
	system     []string // the names of directories that are the system's
	ignored    int      // how many entries git ignores
}

// result is a file of a folder that matches.
type result struct {
	name  string
	index int // among the files of the folder
	// What searching the file found; zero if it was only to be listed.
	lines []Line
	err   error
}

// roots walks all roots. A root that cannot be opened is counted as unreadable.
func (r *run) roots(ctx context.Context) error {
	opened := r.walk.Workspace.Opened()
	if overlap(opened) {
		r.visited = make(map[string]bool)
	}
	r.tally.Roots = make([]Coverage, len(opened))
	for i, root := range opened {
		r.tally.Roots[i] = Stopped
		before := r.tally.Skipped.incomplete()
		r.left = r.walk.MaxFiles
		from := &start{root: root, path: root.Dir.String(), real: root.Real.String()}
		err := r.tree(ctx, root.Dir.String(), from)
		switch {
		case err == errFull:
			r.tally.Roots[i], r.tally.Full = Limited, true
			continue
		case err != nil && !from.opened.Load() && ctx.Err() == nil &&
			!errors.Is(err, workspace.ErrClosed):
			r.tally.Skipped.unreadable(root, "", err)
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

// overlap reports whether a root is the same as another or lies in one.
func overlap(roots []workspace.Root) bool {
	for i, a := range roots {
		for j, b := range roots {
			if i != j && strings.HasPrefix(joinNative(b.Real.String(), ""),
				joinNative(a.Real.String(), "")) {
				return true
			}
		}
	}
	return false
}

// path scans the file or directory at path.
func (r *run) path(ctx context.Context, path string) error {
	info, err := r.walk.Workspace.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.single(ctx, path)
	}
	ref := info.Ref()
	rel := ref.Rel()
	if rel == "." {
		rel = ""
	}
	return r.tree(ctx, path, &start{root: ref.Root(), path: ref.Path(), real: ref.Real(), rel: rel})
}

// single visits one file.
func (r *run) single(ctx context.Context, path string) error {
	file, err := r.walk.Workspace.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	ref := file.Ref()
	dir, name := splitSlash(ref.Rel())
	f := &folder{
		start: &start{root: ref.Root(), rel: dir}, rel: dir, root: ref.Root().Dir.String(),
		path: strings.TrimSuffix(ref.Path(), name),
	}
	r.file(ctx, f, name, func() (*workspace.File, error) { return file, nil })
	return r.deliver(ctx, f)
}

// splitSlash splits a slash-separated path into its directory, which may be "", and last name.
func splitSlash(path string) (dir, name string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:max(slash, 0)], path[slash+1:]
}

// tree walks a directory and everything below it.
func (r *run) tree(ctx context.Context, path string, from *start) error {
	o := workspace.WalkOptions{Ignored: r.walk.Ignored, MaxDepth: r.walk.maxDepth}
	if len(r.walk.Exclude) > 0 {
		o.Exclude = func(dir workspace.Ref, e workspace.Entry) bool {
			below := from.below(dir.Real())
			return slices.ContainsFunc(r.walk.Exclude,
				func(g *Glob) bool { return g.match(below, e.Name) })
		}
	}
	visiting, stop := context.WithCancel(ctx) // ends visits whose results are no longer wanted
	defer stop()
	return r.walk.Workspace.Walk(ctx, path, o, func(f *workspace.Folder) (deliver func() error) {
		from.opened.Store(true)
		visited := r.folder(visiting, from, f)
		return func() error {
			err := r.deliver(ctx, visited)
			if err != nil {
				stop()
			}
			return err
		}
	})
}

// folder visits the files of a directory.
func (r *run) folder(ctx context.Context, from *start, in *workspace.Folder) *folder {
	ref := in.Ref()
	f := &folder{start: from, path: ref.Path(), root: ref.Root().Dir.String(), real: ref.Real(),
		err: in.Err, system: in.System, ignored: in.Ignored}
	f.below = from.below(f.real)
	f.rel = joinSlash(from.rel, f.below)
	for _, e := range in.Entries {
		if e.Type.IsRegular() && ctx.Err() == nil {
			r.file(ctx, f, e.Name, func() (*workspace.File, error) { return in.Open(e) })
		}
	}
	return f
}

// file visits a file of a folder.
func (r *run) file(ctx context.Context, f *folder, name string,
	open func() (*workspace.File, error)) {
	found := result{name: name, index: f.files}
	f.files++
	if r.visited != nil {
		f.names = append(f.names, name)
	}
	if r.walk.Only != nil && !r.walk.Only.match(f.below, name) {
		return
	}
	if r.options != nil {
		found.lines, found.err = r.search(ctx, open)
		if found.err == nil && len(found.lines) == 0 {
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
	if f.err != nil {
		r.tally.Skipped.unreadable(f.start.root, f.rel, f.err)
	}
	r.tally.Skipped.Ignored += f.ignored
	for _, name := range f.system {
		r.tally.Skipped.System = append(r.tally.Skipped.System, joinNative(f.path, name))
	}
	skip, fresh := r.duplicates(f)
	visited := min(fresh, r.left)
	r.left -= visited
	r.tally.Files += visited
	for _, found := range f.found {
		if skip != nil && skip[found.index] {
			continue
		}
		if skip == nil && found.index >= visited {
			break
		}
		if err := r.deliverFile(f, found); err != nil {
			return err
		}
	}
	if visited < fresh {
		return errFull
	}
	if r.walk.Progress != nil {
		return r.walk.Progress(r.tally)
	}
	return nil
}

// duplicates reports which files of a folder have been visited before or exceed the limit, nil if
// none can, and how many are new.
func (r *run) duplicates(f *folder) (skip []bool, fresh int) {
	if r.visited == nil {
		return nil, f.files
	}
	skip = make([]bool, f.files)
	for i, name := range f.names {
		real := joinNative(f.real, name)
		skip[i] = r.visited[real]
		if !skip[i] {
			if fresh++; fresh > r.left {
				skip[i] = true
				continue
			}
			r.visited[real] = true
		}
	}
	return skip, fresh
}

// deliverFile delivers a file, or counts why it was left out.
func (r *run) deliverFile(f *folder, found result) error {
	file := File{f, found.name}
	switch err := found.err; {
	case err == nil:
		err = r.each(Found{file, found.lines})
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
		r.tally.Skipped.unreadable(file.Root(), file.Rel(), err)
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
	buffer = slices.Grow(buffer[:0], firstRead)
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return buffer, context.Cause(ctx)
		}
		size := firstRead
		if !first {
			if len(buffer) == firstRead {
				if err := checkSize(file, limit); err != nil {
					return buffer, err
				}
			}
			size = max(firstRead, len(buffer))
		}
		buffer = slices.Grow(buffer, size)
		n, err := io.ReadFull(file, buffer[len(buffer):len(buffer)+size])
		buffer = buffer[:len(buffer)+n]
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		switch {
		case err != nil && !ended:
			return buffer, err
		case int64(len(buffer)) > limit:
			return buffer, errLarge
		case first && markOf(buffer) == utf8Text &&
			bytes.IndexByte(buffer[:min(len(buffer), binaryCheckSize)], 0) >= 0:
			return buffer, errBinary
		case ended:
			return buffer, nil
		}
	}
}

// checkSize returns errLarge if the file is known to be too large, which saves reading it.
func checkSize(file *workspace.File, limit int64) error {
	info, err := file.Stat()
	if err == nil && info.Size() > limit {
		err = errLarge
	}
	return err
}
