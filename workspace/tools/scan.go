package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

// run is one use of a [Scan].
type run struct {
	scan    Scan
	lookup  *Lookup // nil to find files only
	each    func(Found) error
	scratch sync.Pool // of *scratch

	// What follows belongs to whoever gives out, one at a time.
	tally Tally
	left  int // files that may still be looked at
	// reached holds the real paths of files that were looked at, where roots overlap and a file may be come
	// by twice; else it is nil.
	reached map[string]bool
}

// scratch is what one look at a time needs.
type scratch struct {
	buffer []byte
	*collector
}

// start is where a run begins.
type start struct {
	root workspace.Root
	// top is its real path, and rel its slash-separated path in the root, "" for the root.
	top, rel string
	opened   atomic.Bool
}

// batch is what a look at one directory, or at a part of one, came by.
type batch struct {
	from *start
	// place and real are those of the directory.
	place Place
	real  string
	// rel is its slash-separated path in the root of from, and under that below where the scan began; both are
	// "" for the top.
	rel, under string
	err        error    // why the directory could not be read
	files      int      // how many files it has
	names      []string // of them, if they are needed
	found      []outcome
}

// outcome is what is to be said about one of a batch's files.
type outcome struct {
	name string
	file int // its place among the files
	told *told
}

// told is what was made of a file; nil for one that was only to be found.
type told struct {
	lines []Line
	score int
	err   error
}

// look looks at a directory.
func (r *run) look(ctx context.Context, from *start, f *workspace.Folder) *batch {
	ref := f.Ref()
	b := &batch{from: from, place: PlaceOf(ref), real: ref.Real(), err: f.Err}
	below, _ := strings.CutPrefix(b.real, from.top)
	b.under = filepath.ToSlash(strings.TrimLeft(below, string(filepath.Separator)))
	b.rel = joinSlash(from.rel, b.under)
	for _, e := range f.Entries {
		if !e.Type.IsRegular() || ctx.Err() != nil {
			continue
		}
		r.file(ctx, b, e.Name, func() (*workspace.File, error) { return f.Open(e) })
	}
	return b
}

// file looks at a file of a batch.
func (r *run) file(ctx context.Context, b *batch, name string, open func() (*workspace.File, error)) {
	one := outcome{name: name, file: b.files}
	b.files++
	if r.reached != nil {
		b.names = append(b.names, name)
	}
	if r.scan.Only != nil && !r.scan.Only.match(b.under, name) {
		return
	}
	if r.lookup != nil {
		lines, score, err := r.search(ctx, open)
		if err == nil && len(lines) == 0 {
			return
		}
		one.told = &told{lines, score, err}
	}
	b.found = append(b.found, one)
}

func (r *run) search(ctx context.Context, open func() (*workspace.File, error)) ([]Line, int, error) {
	file, err := open()
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	s.buffer, err = slurp(ctx, file, r.lookup.MaxFileSize, s.buffer)
	if err != nil {
		return nil, 0, err
	}
	hits, err := s.search(ctx, s.buffer)
	if err != nil || len(hits) == 0 {
		return nil, 0, err
	}
	return r.lookup.lines(s.buffer, hits), hits[0].Score, nil
}

// emit gives out a batch, up to the bound of files.
func (r *run) emit(ctx context.Context, b *batch) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b.err != nil {
		r.tally.Skipped.unreadable(b.from.root, b.rel, b.err)
	}
	again, fresh := r.again(b)
	looked := min(fresh, r.left)
	r.left -= looked
	r.tally.Files += looked
	for _, one := range b.found {
		if again != nil && again[one.file] {
			continue
		}
		if again == nil && one.file >= looked {
			break
		}
		if err := r.tell(b, one); err != nil {
			return err
		}
	}
	if looked < fresh {
		return errFull
	}
	return nil
}

// again tells which of a batch's files were looked at before, nil where that cannot be or is beside the
// point, and how many were not.
func (r *run) again(b *batch) (again []bool, fresh int) {
	if r.reached == nil {
		return nil, b.files
	}
	again = make([]bool, b.files)
	for i, name := range b.names {
		real := joinNative(b.real, name)
		again[i] = r.reached[real]
		if !again[i] {
			if fresh++; fresh > r.left {
				again[i] = true // one too many
				continue
			}
			r.reached[real] = true
		}
	}
	return again, fresh
}

// tell gives out what there is to say about a file.
func (r *run) tell(b *batch, one outcome) error {
	file := File{b, one.name}
	if one.told == nil {
		return r.each(Found{File: file})
	}
	switch err := one.told.err; {
	case err == nil:
		return r.each(Found{file, one.told.lines, one.told.score})
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

// File is a file that a [Scan] has come to.
type File struct {
	in   *batch
	name string
}

// Root is the root from which the scan came to the file, which need not be the one that owns it.
func (f File) Root() workspace.Root { return f.in.from.root }

// Rel is its slash-separated path in that root.
func (f File) Rel() string { return joinSlash(f.in.rel, f.name) }

// Path is its absolute path, which begins with the client's spelling of that root.
func (f File) Path() string {
	path := f.Root().Dir.String()
	if f.in.rel != "" {
		path = joinNative(path, filepath.FromSlash(f.in.rel))
	}
	return joinNative(path, f.name)
}

// Place is where it is, with the root that owns it.
func (f File) Place() Place { return f.in.place.in(f.name) }

// joinSlash is the slash-separated path of what is at name in dir; each may be "" for nothing.
func joinSlash(dir, name string) string {
	if dir == "" || name == "" {
		return dir + name
	}
	return dir + "/" + name
}

// cutLast cuts the last name off a slash-separated path.
func cutLast(path string) (dir, name string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:max(slash, 0)], path[slash+1:]
}

// ofTop is the path of a [workspace.Ref] in its root with "" for the root itself.
func ofTop(rel string) string {
	if rel == "." {
		return ""
	}
	return rel
}

// Skipped counts what a [Scan] passed over, so that its result does not seem to be of everything.
type Skipped struct {
	// Binary counts files that are not text, as far as that mattered: those with a NUL at their beginning,
	// and those with a hit that are not UTF-8.
	Binary int
	// Large counts files over the limit of size.
	Large int
	// Unreadable counts files and directories that could not be opened or read.
	Unreadable int
	// First is the first of Unreadable.
	First Failure
}

// Failure is something that could not be opened or read.
type Failure struct {
	// Root is the root from which the scan came, and Rel the slash-separated path in it, "" for the root itself.
	Root workspace.Root
	Rel  string
	Err  error
}

func (s *Skipped) unreadable(root workspace.Root, rel string, err error) {
	if s.Unreadable == 0 {
		s.First = Failure{root, rel, err}
	}
	s.Unreadable++
}

const (
	// sniffed is how much of a file is looked at for a NUL, in bytes.
	sniffed = 8 << 10
	// firstRead is how much of a file is read before its size matters, in bytes.
	firstRead = 64 << 10
)

var (
	errBinary = errors.New("it is a binary file")
	errLarge  = errors.New("it is too large")
)

// slurp reads a file of at most limit bytes into buffer, which it grows as needed. The error is errLarge,
// errBinary for a NUL in what is sniffed, the context's, or that of reading. Whether it is UTF-8 is
// for the caller to look at.
func slurp(ctx context.Context, file *workspace.File, limit int64, buffer []byte) ([]byte, error) {
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
		case first && bytes.IndexByte(buffer[:min(len(buffer), sniffed)], 0) >= 0:
			return buffer, errBinary
		case ended:
			return buffer, nil
		}
	}
}

// checkSize spares reading a file that is too large anyway.
func checkSize(file *workspace.File, limit int64) error {
	info, err := file.Stat()
	if err == nil && info.Size() > limit {
		err = errLarge
	}
	return err
}
