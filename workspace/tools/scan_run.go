package tools

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/workspace"
)

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
