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
	top := &walkDir{dir: d}
	top.users.Store(1)
	wk := &walk{ctx: ctx, o: o, look: look, rules: ruleReader{w: w}}
	if o.LeaveIgnored {
		top.rules = wk.rules.above(d)
	}
	wk.o.workers = cmp.Or(o.workers, runtime.GOMAXPROCS(0))
	wk.o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	return wk.run(&walkNode{in: top})
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
				if visiting.Err() == nil {
					wk.visit(n)
				}
				n.in.release()
				close(n.visited)
			}
		}()
	}
	todo := []*walkNode{top} // the next one is the last
	ahead := 0               // nodes in todo that were begun
	defer func() {
		stop()
		close(begun)
		for ; len(todo) > 0; todo = todo[1:] {
			if todo[0].visited == nil {
				todo[0].in.release()
				continue
			}
			<-todo[0].visited
			todo = append(todo, todo[0].below...)
		}
	}()
	for len(todo) > 0 {
		last := len(todo) - 1
		for i := last; i >= 0 && (ahead < maxAhead || i == last); i-- {
			if todo[i].visited == nil {
				todo[i].visited = make(chan struct{})
				begun <- todo[i]
				ahead++
			}
		}
		n := todo[last]
		select {
		case <-wk.ctx.Done():
		case <-n.visited:
		}
		if wk.ctx.Err() != nil {
			return context.Cause(wk.ctx)
		}
		ahead--
		slices.Reverse(n.below)
		todo = append(todo[:last], n.below...)
		if n.deliver == nil {
			continue
		}
		switch err := n.deliver(); {
		case errors.Is(err, fs.SkipAll):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// partSize is the maximum number of entries of a folder. A larger directory is visited in parts, so
// that several workers share it.
const partSize = 512

// walkNode is a directory to visit, or a part of one.
type walkNode struct {
	in   *walkDir // the parent; for a part and for the start the directory itself
	name string   // in the parent; "" for a part and for the start
	part []Entry

	visited chan struct{} // is closed once it is visited; nil before that is begun
	deliver func() error
	below   []*walkNode // to be delivered after it
}

// walkDir is an open directory that nodes share. The last one closes it.
type walkDir struct {
	dir   *Directory
	below string             // its path from the start
	rules *gitignore.Matcher // of the parent until it is read; nil if nothing is ignored
	depth int
	users atomic.Int32
}

func (d *walkDir) release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = d.dir.Close()
	}
}

// visit visits a node. A panic is delivered in its place, to the goroutine that called Walk.
func (wk *walk) visit(n *walkNode) {
	defer func() {
		if value := recover(); value != nil {
			crash := fmt.Sprintf("%v\n\n%s", value, debug.Stack())
			n.deliver, n.below = func() error { panic(crash) }, nil
		}
	}()
	switch {
	case n.part != nil:
		f := n.in.folder()
		f.Entries = n.part
		n.deliver = wk.look(f)
	case n.name == "":
		wk.read(n, n.in)
	default:
		below := path.Join(n.in.below, n.name)
		dir, err := wk.open(n)
		if err != nil {
			n.deliver = wk.look(&Folder{Err: err, Below: below, ref: n.in.dir.ref.Child(n.name)})
			return
		}
		d := &walkDir{dir: dir, below: below, rules: n.in.rules, depth: n.in.depth + 1}
		d.users.Store(1)
		defer d.release()
		wk.read(n, d)
	}
}

// folder returns the folder of d, without entries.
func (d *walkDir) folder() *Folder { return &Folder{Below: d.below, dir: d.dir, ref: d.dir.ref} }

// open opens the directory that n names.
func (wk *walk) open(n *walkNode) (*Directory, error) {
	if n.in.depth >= wk.o.MaxDepth {
		path := n.in.dir.path(n.name)
		return nil, &LimitError{Path: path, What: "directories deep", Limit: int64(wk.o.MaxDepth)}
	}
	return n.in.dir.openDir(n.name)
}

// read lists d, the directory of n, and calls look.
func (wk *walk) read(n *walkNode, d *walkDir) {
	entries, err := d.dir.Entries(wk.ctx)
	f := d.folder()
	f.Err = err
	if wk.o.LeaveIgnored {
		d.rules = wk.rules.enter(d.dir, entries, d.rules)
		if d.depth == 0 && onlyIgnored(d.rules, entries) { // the caller wants to see them
			d.rules = gitignore.NewMatcher()
		}
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return wk.leavesOut(f, d, e) })
	f.Entries = entries[:min(len(entries), partSize)]
	for part := range slices.Chunk(entries[len(f.Entries):], partSize) {
		n.below = append(n.below, &walkNode{in: d, part: part})
	}
	for _, e := range entries {
		if e.Type.IsDir() {
			n.below = append(n.below, &walkNode{in: d, name: e.Name})
		}
	}
	n.deliver = wk.look(f)
	d.users.Add(int32(len(n.below)))
}

// leavesOut reports whether to leave out an entry of d, and notes in f what that must say.
func (wk *walk) leavesOut(f *Folder, d *walkDir, e Entry) bool {
	switch {
	case d.isSystem(e):
		f.System = append(f.System, e.Name)
		return true
	case wk.ctx.Err() != nil, e.Type.IsRegular() && isTemporary(e.Name),
		wk.o.Exclude != nil && wk.o.Exclude(f, e):
		return true
	case d.rules == nil:
		return false
	case e.Name == repository:
		return true
	case d.rules.Ignores(e.Name, e.Type.IsDir()):
		f.Ignored++
		return true
	}
	return false
}

// isSystem reports whether e is a directory in which the system shows its own state instead of
// files.
func (d *walkDir) isSystem(e Entry) bool {
	return len(d.dir.at.names) == 0 && d.dir.at.top == "/" && e.Type.IsDir() &&
		slices.Contains([]string{"dev", "proc", "sys"}, e.Name)
}
