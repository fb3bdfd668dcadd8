package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	defaultMaxFileSize = 8 << 20
	// maxDepth is the most directories in each other; deeper ones count as unreadable.
	maxDepth = 100
)

// walk says which files of a workspace to visit. The order is fixed: root by root, the files of a
// directory before its subdirectories, both sorted by name. Several goroutines read ahead, but
// results are delivered one at a time. Links are not followed: a file in scope is visited at its
// own path. A root that lies in another is visited in its own turn only, and of several with one
// real path the first.
type walk struct {
	ws *workspace.Workspace
	// path is the file or directory to visit, even if git ignores it; a relative path starts at
	// cwd. "" means every root.
	path string
	// leaveIgnored leaves out files that git ignores.
	leaveIgnored bool
	// only, if not nil, must match the path of a file relative to path or its root.
	only *glob
	// exclude leaves out files and directories whose path relative to path or its root matches one
	// of the globs.
	exclude []*glob
	// query, if not nil, leaves out files without matches.
	query *query
	// each is called with every file, one at a time, until it returns a limit.
	each func(found) *truncation

	walked // changes only while results are delivered, one at a time
}

// walked counts what a walk of a tool visited, left out, and did not visit.
type walked struct {
	Visited int
	LeftOut skipped
	Cut     *truncation
	// Unfinished are the roots that a walk of every root did not visit to the end.
	Unfinished []workspace.Root
}

// skipped counts what a walk left out.
type skipped struct {
	// binary counts files that are not text: those with a NUL at the beginning, and those that
	// match but are neither UTF-8 nor Windows-1252. UTF-16 with a byte order mark is text.
	binary int
	large  int // files above the limit of size
	// unreadable counts files and directories that could not be opened or read, and first says
	// which was the first of them, and why.
	unreadable int
	first      string
	// refused counts files that the check of the workspace refuses, by its error.
	refused map[string]int
	// ignored counts files and directories that git ignores.
	ignored int
	// system are the paths of directories that hold the state of the system, not files, such as
	// /proc.
	system []string

	unnameable int // names that are not Unicode text, which JSON cannot represent
}

// failed counts a file or directory that could not be opened or read.
func (s *skipped) failed(at workspace.Ref, err error) {
	if refused, ok := errors.AsType[*workspace.RefusedError](err); ok {
		if s.refused == nil {
			s.refused = make(map[string]int)
		}
		s.refused[refused.Why.Error()]++
		return
	}
	if s.unreadable == 0 {
		s.first = at.Path() + ": " + err.Error()
	}
	s.unreadable++
}

// found is a file that a walk visits.
type found struct {
	in   *folder
	name string
	// lines are the matching lines and the lines around them, sorted by number.
	lines []line
	err   error // why it could not be searched
}

// ref returns where the file is.
func (f found) ref() workspace.Ref { return f.in.dir.Child(f.name) }

// errStop stops a walk whose callback wants no more.
var errStop = errors.New("stopped")

// run calls each with the files. The error is that of ctx or of the workspace.
func (w *walk) run(ctx context.Context) (walked, error) {
	visit := w.everyRoot
	if w.path != "" {
		visit = w.from
	}
	if err := visit(ctx); err != errStop {
		return w.walked, err
	}
	return w.walked, nil
}

// texts are the memory of files that are searched.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// folder is the result of visiting a directory, or part of a large one.
type folder struct {
	*workspace.Folder
	dir   workspace.Ref // where it is
	top   string        // the path of the start of the walk
	files int           // how many files it has
	found []found       // those that match
}

// everyRoot walks all roots. A root that cannot be opened is counted as unreadable.
func (w *walk) everyRoot(ctx context.Context) error {
	opened := w.ws.Opened()
	first := make(map[string]int, len(opened)) // the first root of each real path
	for i, root := range slices.Backward(opened) {
		first[root.Real.String()] = i
	}
	for i, root := range opened {
		if first[root.Real.String()] < i {
			continue
		}
		isOpen, err := w.tree(ctx, root.Dir.String(), root.Dir.String(), first)
		switch {
		case err != nil && !isOpen && ctx.Err() == nil && !errors.Is(err, workspace.ErrClosed):
			w.LeftOut.failed(root.Ref(), err)
		case err != nil:
			w.Unfinished = opened[i:]
			return err
		}
	}
	return nil
}

// from scans the file or directory at the path.
func (w *walk) from(ctx context.Context) error {
	info, err := w.ws.Stat(w.path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err := w.tree(ctx, w.path, info.Ref().Path(), nil)
		return err
	}
	file, err := w.ws.Open(w.path)
	if err != nil {
		return err
	}
	defer file.Close()
	f := &folder{Folder: &workspace.Folder{}, dir: file.Ref().Parent()}
	w.file(ctx, f, file.Ref().Name(), func() (*workspace.File, error) { return file, nil })
	return w.deliver(ctx, f)
}

// tree walks a directory and everything below it but the roots with these real paths. top is how its
// path is shown. isOpen reports whether anything was delivered.
func (w *walk) tree(
	ctx context.Context, path, top string, roots map[string]int,
) (isOpen bool, err error) {
	visiting, stop := context.WithCancel(ctx) // ends visits whose results are no longer wanted
	defer stop()
	o := workspace.WalkOptions{LeaveIgnored: w.leaveIgnored, MaxDepth: maxDepth,
		Exclude: func(in *workspace.Folder, e workspace.Entry) bool {
			isRoot := false
			if e.Type.IsDir() {
				_, isRoot = roots[joinNative(in.Ref().Real(), e.Name)]
			}
			return isRoot || slices.ContainsFunc(w.exclude,
				func(g *glob) bool { return g.match(in.Below, e.Name) })
		}}
	err = w.ws.Walk(ctx, path, o, func(in *workspace.Folder) (deliver func() error) {
		f := &folder{Folder: in, dir: in.Ref(), top: top}
		for _, e := range in.Entries {
			if e.Type.IsRegular() && visiting.Err() == nil {
				w.file(visiting, f, e.Name, func() (*workspace.File, error) { return in.Open(e) })
			}
		}
		return func() error {
			isOpen = true
			err := w.deliver(ctx, f)
			if err != nil {
				stop()
			}
			return err
		}
	})
	return isOpen, err
}

// file visits a file of a folder.
func (w *walk) file(
	ctx context.Context, f *folder, name string, open func() (*workspace.File, error),
) {
	r := found{in: f, name: name}
	f.files++
	if w.only != nil && !w.only.match(f.Below, name) {
		return
	}
	if w.query != nil {
		r.lines, r.err = w.query.search(ctx, open)
		if r.err == nil && len(r.lines) == 0 {
			return
		}
	}
	f.found = append(f.found, r)
}

// search returns the matching lines of a file.
func (q *query) search(ctx context.Context, open func() (*workspace.File, error)) ([]line, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	memory := texts.Get().(*[]byte)
	defer texts.Put(memory)
	*memory, err = readAll(file, 2*q.fileSize, *memory) // logs are longer than sources
	if err != nil {
		return nil, err
	}
	text := bytes.TrimPrefix(*memory, []byte(bom))
	if markOf(text) != utf8Text { // others may be searched as they are
		var ok bool
		if text, _, ok = decode(text); !ok {
			return nil, errBinary
		}
	}
	hits, err := q.matches(ctx, text)
	if errors.Is(err, errBinary) {
		if decoded, _, ok := decode(text); ok {
			text = decoded
			hits, err = q.matches(ctx, text)
		}
	}
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	return q.lines(text, hits), nil
}

// deliver delivers the results of a folder, up to the limit of files.
func (w *walk) deliver(ctx context.Context, f *folder) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.Err != nil {
		w.LeftOut.failed(f.dir, f.Err)
	}
	w.LeftOut.ignored += f.Ignored
	for _, name := range f.System {
		w.LeftOut.system = append(w.LeftOut.system, joinNative(f.dir.Path(), name))
	}
	w.Visited += f.files
	for _, r := range f.found {
		if err := w.deliverFile(r); err != nil {
			return err
		}
	}
	return nil
}

// deliverFile delivers a file, or counts why it was left out.
func (w *walk) deliverFile(f found) error {
	switch {
	case f.err == nil && !utf8.ValidString(f.ref().Path()):
		w.LeftOut.unnameable++
	case f.err == nil:
		if w.Cut = w.each(f); w.Cut != nil {
			return errStop
		}
	case errors.Is(f.err, errBinary):
		w.LeftOut.binary++
	case errors.Is(f.err, errLarge):
		w.LeftOut.large++
	case errors.Is(f.err, workspace.ErrClosed):
		return f.err
	default:
		w.LeftOut.failed(f.ref(), f.err)
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
// errLarge, errBinary, or a read error. The caller must check that the text is UTF-8.
func readAll(file *workspace.File, limit int64, buffer []byte) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], firstRead)[:firstRead]
	n, err := io.ReadFull(file, buffer)
	buffer = buffer[:n]
	ended := err == io.EOF || err == io.ErrUnexpectedEOF
	switch {
	case err != nil && !ended:
		return buffer, err
	case int64(n) > limit:
		return buffer, errLarge
	case markOf(buffer) == utf8Text &&
		bytes.IndexByte(buffer[:min(n, binaryCheckSize)], 0) >= 0:
		return buffer, errBinary
	case ended:
		return buffer, nil
	}
	info, err := file.Stat() // which may save reading the rest
	if err != nil {
		return buffer, err
	}
	if info.Size() > limit {
		return buffer, errLarge
	}
	all := bytes.NewBuffer(slices.Grow(buffer, int(info.Size())+bytes.MinRead))
	_, err = all.ReadFrom(io.LimitReader(file, limit+1-int64(n)))
	if err == nil && int64(all.Len()) > limit {
		err = errLarge // it has grown
	}
	return all.Bytes(), err
}
