package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

// IgnoredFiles says how a walk treats files that git ignores.
type IgnoredFiles int

const (
	// KeepIgnored includes them.
	KeepIgnored IgnoredFiles = iota
	// LeaveIgnored leaves them out, and ".git" itself. The rules are those of each .gitignore from
	// the top of the repository down, and of its .git/info/exclude, also above the root, unless they
	// belong to another user, or the policy does not allow what is above. Outside a repository every
	// .gitignore counts. A repository inside another has only its own rules. Files of more than
	// 1 MiB do not count, nor do files after the first 4 MiB of rules in a walk.
	LeaveIgnored
)

const (
	// defaultMaxDepth is the default of WalkOptions.MaxDepth.
	defaultMaxDepth = 256
	// maxRules is the maximum size, in bytes, of a file of ignore rules. A larger one is ignored.
	maxRules = 1 << 20
	// maxWalkRules is the maximum size, in bytes, of the rules that a walk reads. Parsed they take
	// up to 40 times as much memory.
	maxWalkRules = 4 << 20
)

// WalkOptions configure [Workspace.Walk].
type WalkOptions struct {
	// Ignored says how to treat files that git ignores. Zero means KeepIgnored.
	Ignored IgnoredFiles
	// MaxDepth is how many directories deep to go from the start. A deeper directory is a folder
	// whose Err is a *[LimitError]. Zero means 256.
	MaxDepth int
	// Exclude, if not nil, reports whether to leave out an entry of a directory, and what is below
	// it. It is called from several goroutines.
	Exclude func(dir Ref, e Entry) bool

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

	dir *Directory // nil if it could not be opened
	ref Ref
}

// Ref returns where the directory is.
func (f *Folder) Ref() Ref { return f.ref }

// Open opens one of its entries, as [Directory.Open] does. The caller closes the file.
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
//	err := ws.Walk(ctx, ".", workspace.WalkOptions{Ignored: workspace.LeaveIgnored},
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
func (w *Workspace) Walk(ctx context.Context, start string, o WalkOptions,
	look func(*Folder) (deliver func() error)) error {
	a, err := w.beginAt(start)
	if err != nil {
		return err
	}
	defer w.end()
	d, err := w.openDir(a)
	if err != nil {
		return err
	}
	wk := newWalk(w, ctx, o, look)
	wk.head = wk.top(d)
	return wk.run()
}

// walk is a running Walk. Its nodes are a list in the order of delivery: each is visited, followed
// by the nodes below it, and delivered once it is the first. Workers take the first waiting node,
// so that the head only ever waits for its own visit.
type walk struct {
	w    *Workspace
	ctx  context.Context
	o    WalkOptions
	look func(*Folder) func() error

	rulesRead atomic.Int64 // bytes

	mu         sync.Mutex
	changed    *sync.Cond
	head       *walkNode
	ahead      int // nodes that are finished and not delivered
	delivering bool
	err        error // why it stops
	crash      *crash
}

// maxAhead is the most nodes that may be finished before their turn.
const maxAhead = 128

func newWalk(w *Workspace, ctx context.Context, o WalkOptions,
	look func(*Folder) func() error) *walk {
	o.workers = cmp.Or(o.workers, runtime.GOMAXPROCS(0))
	o.MaxDepth = cmp.Or(o.MaxDepth, defaultMaxDepth)
	wk := &walk{w: w, ctx: ctx, o: o, look: look}
	wk.changed = sync.NewCond(&wk.mu)
	return wk
}

// run works until everything is delivered or something fails.
func (wk *walk) run() error {
	var others sync.WaitGroup
	for range wk.o.workers - 1 {
		others.Go(wk.work)
	}
	wk.work()
	others.Wait()
	for n := wk.head; n != nil; n = n.next {
		n.in.release()
	}
	if wk.crash != nil {
		panic(fmt.Sprintf("%v\n\n%s", wk.crash.value, wk.crash.stack))
	}
	if errors.Is(wk.err, fs.SkipAll) {
		return nil
	}
	return wk.err
}

// work visits nodes until all are visited.
func (wk *walk) work() {
	wk.mu.Lock()
	defer wk.mu.Unlock()
	for wk.head != nil && wk.err == nil {
		if wk.ctx.Err() != nil {
			wk.fail(context.Cause(wk.ctx))
			return
		}
		n := wk.take()
		if n == nil {
			wk.changed.Wait()
			continue
		}
		var deliver func() error
		var below []*walkNode
		wk.unlocked(func() { deliver, below = wk.visit(n) })
		n.done(deliver, below)
		wk.ahead++
		wk.deliver()
		wk.changed.Broadcast()
	}
}

// take returns the first waiting node, or nil if none waits or enough are finished ahead.
func (wk *walk) take() *walkNode {
	for n := wk.head; n != nil; n = n.next {
		if n.state == waiting {
			n.state = taken
			return n
		}
		if wk.ahead >= maxAhead {
			return nil
		}
	}
	return nil
}

// deliver delivers the finished nodes at the head of the list, unless another worker does.
func (wk *walk) deliver() {
	if wk.delivering {
		return
	}
	wk.delivering = true
	for wk.err == nil && wk.ctx.Err() == nil && wk.head != nil && wk.head.state == finished {
		deliver := wk.head.deliver
		wk.head = wk.head.next
		wk.ahead--
		if deliver == nil {
			continue
		}
		var err error
		wk.unlocked(func() { err = deliver() })
		if err != nil {
			wk.fail(err)
		}
	}
	wk.delivering = false
}

// unlocked calls do without mu, which the caller holds. A panic stops the walk; run repeats it in
// the goroutine that called Walk, which may recover from it.
func (wk *walk) unlocked(do func()) {
	wk.mu.Unlock()
	defer wk.mu.Lock()
	defer func() {
		if value := recover(); value != nil {
			wk.mu.Lock()
			defer wk.mu.Unlock()
			if wk.crash == nil {
				wk.crash = &crash{value: value, stack: debug.Stack()}
			}
			wk.fail(errCrashed)
		}
	}()
	do()
}

// crash is a panic of a callback.
type crash struct {
	value any
	stack []byte
}

var errCrashed = errors.New("a callback of the walk panicked")

// fail stops the walk. The caller holds mu.
func (wk *walk) fail(err error) {
	if wk.err == nil {
		wk.err = err
		wk.changed.Broadcast()
	}
}

// nodeState is the state of a walkNode.
type nodeState int

const (
	waiting nodeState = iota
	taken
	finished
)

// partSize is the maximum number of entries of a folder. A larger directory is visited in parts, so
// that several workers share it.
const partSize = 512

// walkNode is a directory to visit, or a part of one.
type walkNode struct {
	in   *walkDir // the parent; for a part and for the start the directory itself
	name string   // in the parent; "" for a part and for the start
	part []Entry

	state   nodeState
	deliver func() error
	next    *walkNode
}

// done finishes the node, and inserts below, the nodes below it, after it.
func (n *walkNode) done(deliver func() error, below []*walkNode) {
	n.in, n.part = nil, nil
	n.state, n.deliver = finished, deliver
	for _, b := range slices.Backward(below) {
		b.next = n.next
		n.next = b
	}
}

// walkDir is an open directory that nodes share. The last one closes it.
type walkDir struct {
	dir   *Directory
	rules *gitignore.Matcher // nil if nothing is ignored
	depth int
	users atomic.Int32
}

func newWalkDir(dir *Directory, depth int) *walkDir {
	d := &walkDir{dir: dir, depth: depth}
	d.users.Store(1)
	return d
}

func (d *walkDir) release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = d.dir.Close()
	}
}

// top returns the node of the start.
func (wk *walk) top(d *Directory) *walkNode {
	top := newWalkDir(d, 0)
	if wk.o.Ignored == LeaveIgnored {
		top.rules = wk.rulesAbove(d)
	}
	return &walkNode{in: top}
}

// visit visits a node. It returns what look returns, and the nodes below.
func (wk *walk) visit(n *walkNode) (deliver func() error, below []*walkNode) {
	switch {
	case n.part != nil:
		defer n.in.release()
		return wk.look(&Folder{Entries: n.part, dir: n.in.dir, ref: n.in.dir.ref}), nil
	case n.name == "":
		defer n.in.release()
		return wk.read(n.in, n.in.rules)
	}
	defer n.in.release()
	dir, err := wk.open(n)
	if err != nil {
		return wk.look(&Folder{Err: err, ref: n.in.dir.ref.child(n.name)}), nil
	}
	child := newWalkDir(dir, n.in.depth+1)
	defer child.release()
	return wk.read(child, n.in.rules)
}

// open opens the directory that n names.
func (wk *walk) open(n *walkNode) (*Directory, error) {
	if n.in.depth >= wk.o.MaxDepth {
		path := n.in.dir.path(n.name)
		return nil, &LimitError{Path: path, What: "directories deep", Limit: int64(wk.o.MaxDepth)}
	}
	return n.in.dir.openDir(n.name)
}

// read lists d and calls look. outer has the rules of the parent, or for the start those of all
// directories above.
func (wk *walk) read(d *walkDir, outer *gitignore.Matcher) (
	deliver func() error, below []*walkNode,
) {
	entries, err := d.dir.Entries(wk.ctx)
	if wk.o.Ignored == LeaveIgnored {
		d.rules = wk.enter(d.dir, entries, outer)
		if d.depth == 0 && onlyIgnored(d.rules, entries) { // the caller wants to see them
			d.rules = gitignore.NewMatcher()
		}
	}
	var system []string
	ignored := 0
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		if d.isSystem(e) {
			system = append(system, e.Name)
			return true
		}
		if wk.ctx.Err() != nil || e.Type.IsRegular() && isTemporary(e.Name) ||
			wk.o.Exclude != nil && wk.o.Exclude(d.dir.ref, e) {
			return true
		}
		if d.ignores(e) && e.Name != repository {
			ignored++
		}
		return d.ignores(e)
	})
	first := entries
	if len(entries) > partSize {
		first = entries[:partSize]
	}
	for part := range slices.Chunk(entries[len(first):], partSize) {
		below = append(below, &walkNode{in: d, part: part})
	}
	for _, e := range entries {
		if e.Type.IsDir() {
			below = append(below, &walkNode{in: d, name: e.Name})
		}
	}
	deliver = wk.look(&Folder{Entries: first, System: system, Ignored: ignored, Err: err,
		dir: d.dir, ref: d.dir.ref})
	d.users.Add(int32(len(below))) // not before look, which may panic
	return deliver, below
}

// ignores reports whether an entry of d is left out.
func (d *walkDir) ignores(e Entry) bool {
	return d.rules != nil && (e.Name == repository ||
		d.rules.Match(e.Name, kindOf(e)) == gitignore.Ignored)
}

// isSystem reports whether e is a directory in which the system shows its own state instead of
// files.
func (d *walkDir) isSystem(e Entry) bool {
	return len(d.dir.at.names) == 0 && d.dir.at.top == "/" && e.Type.IsDir() &&
		slices.Contains([]string{"dev", "proc", "sys"}, e.Name)
}

func kindOf(e Entry) gitignore.Kind {
	if e.Type.IsDir() {
		return gitignore.Directory
	}
	return gitignore.File
}

const (
	repository = ".git"
	ruleFile   = ".gitignore"
)

// enter returns the matcher of dir, which has these entries. outer is that of the parent.
func (wk *walk) enter(dir *Directory, entries []Entry,
	outer *gitignore.Matcher) *gitignore.Matcher {
	named := func(name string) (Entry, bool) {
		i, ok := slices.BinarySearchFunc(entries, name,
			func(e Entry, name string) int { return strings.Compare(e.Name, name) })
		if !ok {
			return Entry{}, false
		}
		return entries[i], true
	}
	var own *gitignore.Rules
	if e, ok := named(ruleFile); ok && e.Type.IsRegular() {
		own = wk.parse(dir, ruleFile)
	}
	_, top := named(repository)
	return wk.matcher(dir, outer, top, own)
}

// matcher returns the matcher of dir, which has the rules own itself. top reports whether dir is
// the top of a repository.
func (wk *walk) matcher(dir *Directory, outer *gitignore.Matcher, top bool,
	own *gitignore.Rules) *gitignore.Matcher {
	switch {
	case top:
		return gitignore.NewMatcher(own, wk.excludes(dir))
	case outer == nil:
		return gitignore.NewMatcher(own)
	default:
		return outer.Enter(dir.at.names[len(dir.at.names)-1], own)
	}
}

// excludes returns the rules in .git/info/exclude of dir.
func (wk *walk) excludes(dir *Directory) *gitignore.Rules {
	for _, name := range []string{repository, "info"} {
		child, err := dir.openDir(name)
		if err != nil {
			return nil
		}
		defer child.Close()
		dir = child
	}
	return wk.parse(dir, "exclude")
}

// parse reads a file of rules. Like git it ignores a file that cannot be read, and a link.
func (wk *walk) parse(dir *Directory, name string) *gitignore.Rules {
	info, err := dir.lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRules {
		return nil
	}
	file, err := dir.openFile(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	return wk.readRules(file, info.Size())
}
