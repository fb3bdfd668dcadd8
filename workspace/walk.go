package workspace

import (
	"context"
	"errors"
	"io/fs"
)

// Visit is something that [Workspace.Walk] came by.
type Visit struct {
	Entry
	// Err is why a directory could not be opened or read; nil for every other visit.
	Err error
	ref Ref
	in  *Directory // the directory that holds it; nil for the start
}

// Ref is where it is.
func (v Visit) Ref() Ref { return v.ref }

// Open opens what was visited, by the handle of its directory, as [Directory.Open] does. It may be
// called until the visit ends. The caller closes the file.
func (v Visit) Open() (*File, error) {
	if v.in == nil {
		return nil, unfit(v.ref.Path(), fs.ModeDir)
	}
	return v.in.openEntry(v.Entry)
}

// Walk visits the directory start and all that is below it, depth first, sorted by name, each directory
// before what is in it. It goes from handle to handle. Links are visited, not followed; open
// one to follow it.
//
// As with [fs.WalkDir], visit returns [fs.SkipDir] to leave out a directory, or the rest of
// the one it is in, [fs.SkipAll] to stop, and any other error to fail. A directory that cannot be
// opened or read is visited a second time, with Err set; if visit returns nil the walk goes
// on after it. Walk returns what failed, or the context's error.
//
// The directory that is being walked, and those above it up to start, are held open.
func (w *Workspace) Walk(ctx context.Context, start string, visit func(Visit) error) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.end()
	a, err := parse(start)
	if err != nil {
		return err
	}
	d, err := w.openDir(a)
	if err != nil {
		return err
	}
	defer d.Close()
	first := Visit{Entry: Entry{a.name(d.Ref()), fs.ModeDir}, ref: d.Ref()}
	err = visit(first)
	if err == nil {
		err = walkDir(ctx, d, first, visit)
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// walkDir visits what is in d, which was visited as self.
func walkDir(ctx context.Context, d *Directory, self Visit, visit func(Visit) error) error {
	entries, err := d.Entries(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		self.Err = err
		return visit(self)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v := Visit{Entry: e, ref: d.refOf(e), in: d}
		err := visit(v)
		if err == nil && e.Type.IsDir() {
			err = walkInto(ctx, v, visit)
		}
		if errors.Is(err, fs.SkipDir) {
			if e.Type.IsDir() {
				continue
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walkInto opens the directory that was visited as v, and visits what is in it.
func walkInto(ctx context.Context, v Visit, visit func(Visit) error) error {
	d, err := v.in.openDir(v.Name)
	if err != nil {
		v.Err = err
		return visit(v)
	}
	defer d.Close()
	v.ref = d.Ref()
	return walkDir(ctx, d, v, visit)
}
