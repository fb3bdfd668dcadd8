package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

// defaultMaxDepth is the default of WalkOptions.MaxDepth.
const defaultMaxDepth = 256

// WalkOptions configure [Workspace.Walk].
type WalkOptions struct {
	// LeaveIgnored leaves out files that git ignores, and ".git" itself. The rules are those of
	// each .gitignore from the top of the repository down, and of its .git/info/exclude, also above
	// the root, unless they belong to another user, or the policy does not allow what is above.
	// Outside a repository every .gitignore counts. A repository inside another has only its own
	// rules. Files of more than 1 MiB do not count, nor do files after the first 4 MiB of rules in
	// a walk.
	LeaveIgnored bool
	// MaxDepth is how many directories deep to go from the start. A deeper directory is a folder
	// whose Err is a *[LimitError]. Zero means 256.
	MaxDepth int
	// Exclude, if not nil, reports whether to leave out an entry of a directory, and what is below
	// it. It is called from several goroutines, before the folder has entries.
	Exclude func(in *Folder, e Entry) bool

	workers int // zero means GOMAXPROCS
}

// Folder is a directory that a walk found, or a part of a large one. It may be used until look
// returns, from any goroutine.
type Folder struct {
	// Entries are the entries of the directory or part, sorted by name, without those that the
	// options leave out. They include directories, and links as links.
	Entries []Entry
	// System are the names of directories that were left out of Entries because they contain no
	// real files: proc, sys and dev at the top of the file system.
	System []string
	// Ignored counts the entries that were left out because git ignores them.
	Ignored int
	// Err is why the directory could not be opened or read to its end.
	Err error
	// Below is the slash-separated path from the start of the walk, "" for the start itself.
	Below string

	dir *Directory // nil if it could not be opened
	ref Ref
}

// Ref returns where the directory is.
func (f *Folder) Ref() Ref { return f.ref }

// Open opens one of its entries, a regular file or a link to one, as [Workspace.Open] does. The
// caller closes the file.
func (f *Folder) Open(e Entry) (*File, error) {
	if f.dir == nil {
		return nil, f.Err
	}
	if err := parseName(e.Name); err != nil {
		return nil, err
	}
	return f.dir.openEntry(e)
}

// Walk visits the directory start and all directories below it, several at once, and delivers what
// it finds in order. It calls look once for each folder, from several goroutines. The function that
// look returns, unless nil, is called later: never two at once, and always in the same order, in
// which a directory comes before its subdirectories and these are sorted by name. So a search reads
// in look, and reports in the function that look returns:
//
//	err := ws.Walk(ctx, ".", workspace.WalkOptions{LeaveIgnored: true},
//		func(f *workspace.Folder) (deliver func() error) {
//			var found []Match
//			for _, e := range f.Entries {
//				if e.Type.IsRegular() {
//					found = append(found, search(f.Open(e))...)
//				}
//			}
//			return func() error { return report(found) } // fs.SkipAll stops the walk
//		})
//
// If a delivery fails or ctx ends, Walk delivers nothing more, and returns the error once all calls
// of look have returned; for [fs.SkipAll] it returns nil. A directory that cannot be opened or read
// is a folder with Err set, and the walk continues. Walk does not follow links; [Folder.Open] does.
// It leaves out /proc, /sys and /dev unless it starts there or below, and the temporary files of
// [Workspace.WriteFile]. It buffers a bounded number of folders ahead of their turn, and holds some
// hundreds of directories open at most.
func (w *Workspace) Walk(
	ctx context.Context, start string, o WalkOptions, look func(*Folder) (deliver func() error),
) error {
	a, err := w.beginAt(start)
	if err != nil {
		return err
	}
	defer w.finish()
	d, err := w.openDir(a)
	if err != nil {
		return err
	}
	o.workers = cmp.Or(o.workers, runtime.GOMAXPROCS(0))
	o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	wk := &walk{ctx: ctx, o: o, look: look, rules: ruleReader{w: w}}
	var outer *gitignore.Matcher
	if o.LeaveIgnored {
		outer = wk.rules.above(d)
	}
	top := newWalkDir(d, "", 0)
	return wk.run(newWalkNode(top, func() visited { return wk.read(top, outer) }))
}

// walk is a running Walk.
type walk struct {
	ctx   context.Context
	o     WalkOptions
	look  func(*Folder) func() error
	rules ruleReader
}

// maxAhead is the most nodes that are begun before their turn.
const maxAhead = 128

// run visits top and the nodes below it, several at once, and delivers them in order: each is
// followed by those below it. At most maxAhead nodes are begun besides the next one to deliver.
func (wk *walk) run(top *walkNode) error {
	visiting, stop := context.WithCancel(wk.ctx)
	begun := make(chan *walkNode, maxAhead+1)
	for range wk.o.workers {
		go func() {
			for n := range begun {
				n.run(visiting)
			}
		}()
	}
	todo := []*walkNode{top} // the next one is the last
	ahead := 0               // nodes in todo that were begun
	defer func() {
		stop()
		close(begun)
		for ; len(todo) > 0; todo = todo[1:] {
			if !todo[0].begun {
				todo[0].run(visiting) // which only releases the directory
			}
			found := <-todo[0].done
			todo = append(todo, found.below...)
		}
	}()
	for len(todo) > 0 {
		last := len(todo) - 1
		for i := last; i >= 0 && (ahead < maxAhead || i == last); i-- {
			if !todo[i].begun {
				todo[i].begun = true
				begun <- todo[i]
				ahead++
			}
		}
		var found visited
		select {
		case <-wk.ctx.Done():
		case found = <-todo[last].done:
			ahead--
			slices.Reverse(found.below)
			todo = append(todo[:last], found.below...)
		}
		if wk.ctx.Err() != nil {
			return context.Cause(wk.ctx)
		}
		if found.deliver == nil {
			continue
		}
		switch err := found.deliver(); {
		case errors.Is(err, fs.SkipAll):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// walkNode is a directory to visit, or a part of one.
type walkNode struct {
	in    *walkDir // is open until the node was visited
	visit func() visited
	done  chan visited // gets what visit has found
	begun bool         // only run of the walk uses it
}

// visited is the result of visiting a node.
type visited struct {
	deliver func() error // may be nil
	below   []*walkNode  // to be delivered after it
}

func newWalkNode(in *walkDir, visit func() visited) *walkNode {
	return &walkNode{in: in, visit: visit, done: make(chan visited, 1)}
}

// run visits the node, unless ctx has ended. A panic is delivered in its place, to the goroutine that
// called Walk.
func (n *walkNode) run(ctx context.Context) {
	var found visited
	defer func() {
		if value := recover(); value != nil {
			crash := fmt.Sprintf("%v\n\n%s", value, debug.Stack())
			found = visited{deliver: func() error { panic(crash) }}
		}
		n.in.release()
		n.done <- found
	}()
	if ctx.Err() == nil {
		found = n.visit()
	}
}

// walkDir is an open directory that nodes share. The last user closes it.
type walkDir struct {
	dir   *Directory
	below string // its path from the start
	depth int
	users atomic.Int32
}

// newWalkDir returns an open directory that has one user.
func newWalkDir(dir *Directory, below string, depth int) *walkDir {
	d := &walkDir{dir: dir, below: below, depth: depth}
	d.users.Store(1)
	return d
}

func (d *walkDir) release() {
	if d.users.Add(-1) == 0 {
		_ = d.dir.Close()
	}
}

// partSize is the maximum number of entries of a folder. A larger directory is visited in parts, so
// that several workers share it.
const partSize = 512

// folder returns the folder of d with some entries.
func (d *walkDir) folder(entries []Entry, err error) *Folder {
	return &Folder{Entries: entries, Err: err, Below: d.below, dir: d.dir, ref: d.dir.ref}
}

// visitDir visits the directory name in another, which has these rules.
func (wk *walk) visitDir(in *walkDir, name string, rules *gitignore.Matcher) visited {
	below := path.Join(in.below, name)
	dir, err := wk.open(in, name)
	if err != nil {
		f := &Folder{Err: err, Below: below, ref: in.dir.ref.Child(name)}
		return visited{deliver: wk.look(f)}
	}
	d := newWalkDir(dir, below, in.depth+1)
	defer d.release()
	return wk.read(d, rules)
}

// open opens the directory name in another.
func (wk *walk) open(in *walkDir, name string) (*Directory, error) {
	if in.depth >= wk.o.MaxDepth {
		return nil, &LimitError{Path: in.dir.path(name), What: "directories deep",
			Limit: int64(wk.o.MaxDepth)}
	}
	return in.dir.openDir(name)
}

// read visits an open directory. outer are the rules of the one above, nil for none.
func (wk *walk) read(d *walkDir, outer *gitignore.Matcher) visited {
	entries, err := d.dir.Entries(wk.ctx)
	rules := outer
	if wk.o.LeaveIgnored {
		rules = wk.rules.enter(d.dir, entries, outer)
		if d.depth == 0 && onlyIgnored(rules, entries) { // the caller wants to see them
			rules = gitignore.NewMatcher()
		}
	}
	f := d.folder(nil, err)
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return wk.leavesOut(f, rules, e) })
	f.Entries = entries[:min(len(entries), partSize)]
	var below []*walkNode
	for part := range slices.Chunk(entries[len(f.Entries):], partSize) {
		visit := func() visited { return visited{deliver: wk.look(d.folder(part, nil))} }
		below = append(below, newWalkNode(d, visit))
	}
	for _, e := range entries {
		if e.Type.IsDir() {
			visit := func() visited { return wk.visitDir(d, e.Name, rules) }
			below = append(below, newWalkNode(d, visit))
		}
	}
	found := visited{wk.look(f), below}
	d.users.Add(int32(len(below)))
	return found
}

// leavesOut reports whether to leave out an entry, and notes in f what that must say.
func (wk *walk) leavesOut(f *Folder, rules *gitignore.Matcher, e Entry) bool {
	switch {
	case f.dir.isSystem(e):
		f.System = append(f.System, e.Name)
		return true
	case wk.ctx.Err() != nil, e.Type.IsRegular() && isTemporary(e.Name),
		wk.o.Exclude != nil && wk.o.Exclude(f, e):
		return true
	case rules == nil:
		return false
	case e.Name == repository:
		return true
	case rules.Ignores(e.Name, e.Type.IsDir()):
		f.Ignored++
		return true
	}
	return false
}

// isSystem reports whether e is a directory in which the system shows its own state instead of
// files.
func (d *Directory) isSystem(e Entry) bool {
	return len(d.at.names) == 0 && d.at.top == "/" && e.Type.IsDir() &&
		slices.Contains([]string{"dev", "proc", "sys"}, e.Name)
}
