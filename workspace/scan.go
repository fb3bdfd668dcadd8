package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/gitignore"
)

// IgnoredFiles says how a scan treats files that git ignores.
type IgnoredFiles int

const (
	// KeepIgnored includes them.
	KeepIgnored IgnoredFiles = iota
	// LeaveIgnored leaves them out, and ".git" itself. The rules are those of each .gitignore from
	// the top of the repository down, and of its .git/info/exclude. Of a repository whose top is
	// above the root, only the rules inside the root are known. Outside of a repository every
	// .gitignore counts. A repository inside another has only its own rules.
	LeaveIgnored
)

const (
	// DefaultMaxScanDepth is the default of ScanOptions.MaxDepth.
	DefaultMaxScanDepth = 256
	// maxRules is the maximum size, in bytes, of a file of ignore rules. A larger one is ignored.
	maxRules = 1 << 20
)

// ScanOptions configure [Workspace.Scan].
type ScanOptions struct {
	// Ignored says how to treat files that git ignores. Zero means KeepIgnored.
	Ignored IgnoredFiles
	// MaxDepth is how many directories deep to go from the start. A deeper directory is a folder
	// whose Err is a *[LimitError]. Zero means [DefaultMaxScanDepth].
	MaxDepth int
	// Exclude, if not nil, reports whether to leave out an entry of a directory, and what is below
	// it. It is called from several goroutines.
	Exclude func(dir Ref, e Entry) bool

	workers int // zero means GOMAXPROCS
}

// Folder is a directory that a scan found, or a part of a large one. It may be used until look
// returns, from any goroutine.
type Folder struct {
	// Entries are the entries of the directory, or of the part of it, sorted by name, without those
	// that the options leave out. It includes directories, and links as links.
	Entries []Entry
	// System are the names of the directories among them that were left out because they hold no
	// files: proc, sys and dev at the top of the file system.
	System []string
	// Err is why the directory could not be opened or read to its end.
	Err error

	dir *Directory // nil if it could not be opened
	ref Ref
}

// Ref returns where the directory is.
func (f *Folder) Ref() Ref { return f.ref }

// RefOf returns where one of its entries is.
func (f *Folder) RefOf(e Entry) Ref {
	if f.dir == nil {
		return f.ref.child(e.Name)
	}
	return f.dir.refOf(e)
}

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

// Scan visits the directory start and all directories below it, several at once, and delivers what
// it finds in order. It calls look once for each folder, from several goroutines. The function that
// look returns, unless nil, is called later: never two at once, and always in the same order, in
// which a directory comes before its subdirectories and these are sorted by name. So a search reads
// in look, and reports in the function that look returns:
//
//	err := ws.Scan(ctx, ".", workspace.ScanOptions{Ignored: workspace.LeaveIgnored},
//		func(f *workspace.Folder) (deliver func() error) {
//			var found []Match
//			for _, e := range f.Entries {
//				if e.Type.IsRegular() {
//					found = append(found, search(f.Open(e))...)
//				}
//			}
//			return func() error { return report(found) } // fs.SkipAll stops the scan
//		})
//
// If a delivery fails or ctx ends, Scan delivers nothing more, and returns the error once all calls
// of look have returned; for [fs.SkipAll] it returns nil. A directory that cannot be opened or read
// is a folder with Err set, and the scan continues. Scan does not follow links; [Folder.Open] does.
// It leaves out /proc, /sys and /dev unless it starts there or below. It buffers a bounded number
// of folders ahead of their turn, and holds some hundreds of directories open at most.
func (w *Workspace) Scan(ctx context.Context, start string, o ScanOptions, look func(*Folder) (deliver func() error)) error {
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
	s := newScan(w, ctx, o, look)
	s.head = s.top(d)
	return s.run()
}

// scan is a running Scan. Its nodes are a list in the order of delivery: each is visited, followed
// by the nodes below it, and delivered once it is the first. Workers take the first waiting node,
// so that the head only ever waits for its own visit.
type scan struct {
	w    *Workspace
	ctx  context.Context
	o    ScanOptions
	look func(*Folder) func() error

	mu         sync.Mutex
	changed    *sync.Cond
	head       *scanNode
	ahead      int // nodes that are finished and not delivered
	delivering bool
	err        error // why it stops
	crash      *crash
}

// maxAhead is how many nodes may be finished before their turn.
const maxAhead = 128

func newScan(w *Workspace, ctx context.Context, o ScanOptions, look func(*Folder) func() error) *scan {
	o.workers = cmp.Or(o.workers, runtime.GOMAXPROCS(0))
	o.MaxDepth = cmp.Or(o.MaxDepth, DefaultMaxScanDepth)
	s := &scan{w: w, ctx: ctx, o: o, look: look}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// run works until everything is delivered or something fails.
func (s *scan) run() error {
	var others sync.WaitGroup
	for range s.o.workers - 1 {
		others.Go(s.work)
	}
	s.work()
	others.Wait()
	for n := s.head; n != nil; n = n.next {
		n.in.release()
	}
	if s.crash != nil {
		panic(fmt.Sprintf("%v\n\n%s", s.crash.value, s.crash.stack))
	}
	if errors.Is(s.err, fs.SkipAll) {
		return nil
	}
	return s.err
}

// work visits nodes until there are none left.
func (s *scan) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.head != nil && s.err == nil {
		if s.ctx.Err() != nil {
			s.fail(context.Cause(s.ctx))
			return
		}
		n := s.take()
		if n == nil {
			s.changed.Wait()
			continue
		}
		var deliver func() error
		var below []*scanNode
		s.unlocked(func() { deliver, below = s.visit(n) })
		n.done(deliver, below)
		s.ahead++
		s.deliver()
		s.changed.Broadcast()
	}
}

// take returns the first waiting node, or nil if none waits or enough are finished ahead.
func (s *scan) take() *scanNode {
	for n := s.head; n != nil; n = n.next {
		if n.state == waiting {
			n.state = taken
			return n
		}
		if s.ahead >= maxAhead {
			return nil
		}
	}
	return nil
}

// deliver delivers the finished nodes at the head of the list, unless another worker does.
func (s *scan) deliver() {
	if s.delivering {
		return
	}
	s.delivering = true
	for s.err == nil && s.ctx.Err() == nil && s.head != nil && s.head.state == finished {
		deliver := s.head.deliver
		s.head = s.head.next
		s.ahead--
		if deliver == nil {
			continue
		}
		var err error
		s.unlocked(func() { err = deliver() })
		if err != nil {
			s.fail(err)
		}
	}
	s.delivering = false
}

// unlocked calls do without mu, which the caller holds. A panic stops the scan; run repeats it in
// the goroutine that called Scan, which may recover from it.
func (s *scan) unlocked(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	defer func() {
		if value := recover(); value != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.crash == nil {
				s.crash = &crash{value: value, stack: debug.Stack()}
			}
			s.fail(errCrashed)
		}
	}()
	do()
}

// crash is a panic of a callback.
type crash struct {
	value any
	stack []byte
}

var errCrashed = errors.New("a callback of the scan panicked")

// fail stops the scan. The caller holds mu.
func (s *scan) fail(err error) {
	if s.err == nil {
		s.err = err
		s.changed.Broadcast()
	}
}

// scanState is the state of a scanNode.
type scanState int

const (
	waiting scanState = iota
	taken
	finished
)

// partSize is the maximum number of entries of a folder. A larger directory is visited in parts, so
// that several workers share it.
const partSize = 512

// scanNode is a directory to visit, or a part of one.
type scanNode struct {
	in   *scanDir // the parent; for a part and for the start the directory itself
	name string   // in the parent; "" for a part and for the start
	part []Entry

	state   scanState
	deliver func() error
	next    *scanNode
}

// done finishes the node, and inserts the nodes below it after it.
func (n *scanNode) done(deliver func() error, below []*scanNode) {
	n.in, n.part = nil, nil
	n.state, n.deliver = finished, deliver
	for _, b := range slices.Backward(below) {
		b.next = n.next
		n.next = b
	}
}

// scanDir is an open directory that nodes share. The last one closes it.
type scanDir struct {
	dir   *Directory
	rules *gitignore.Matcher // nil if nothing is ignored
	depth int
	users atomic.Int32
}

func newScanDir(dir *Directory, depth int) *scanDir {
	d := &scanDir{dir: dir, depth: depth}
	d.users.Store(1)
	return d
}

func (d *scanDir) release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = d.dir.Close()
	}
}

// top returns the node of the start.
func (s *scan) top(d *Directory) *scanNode {
	top := newScanDir(d, 0)
	if s.o.Ignored == LeaveIgnored {
		top.rules = s.rulesAbove(d)
	}
	return &scanNode{in: top}
}

// visit visits a node. It returns what look returns, and the nodes below.
func (s *scan) visit(n *scanNode) (deliver func() error, below []*scanNode) {
	switch {
	case n.part != nil:
		defer n.in.release()
		return s.look(&Folder{Entries: n.part, dir: n.in.dir, ref: n.in.dir.ref}), nil
	case n.name == "":
		defer n.in.release()
		return s.read(n.in, n.in.rules)
	}
	defer n.in.release()
	dir, err := s.open(n)
	if err != nil {
		return s.look(&Folder{Err: err, ref: n.in.dir.ref.child(n.name)}), nil
	}
	child := newScanDir(dir, n.in.depth+1)
	defer child.release()
	return s.read(child, n.in.rules)
}

// open opens the directory that n names.
func (s *scan) open(n *scanNode) (*Directory, error) {
	if n.in.depth >= s.o.MaxDepth {
		path := n.in.dir.path(n.name)
		return nil, &LimitError{Path: path, What: "directories deep", Limit: int64(s.o.MaxDepth)}
	}
	return n.in.dir.openDir(n.name)
}

// read lists d and calls look. outer are the rules of the parent, for the start those of all
// directories above.
func (s *scan) read(d *scanDir, outer *gitignore.Matcher) (deliver func() error, below []*scanNode) {
	entries, err := d.dir.Entries(s.ctx)
	if s.o.Ignored == LeaveIgnored {
		d.rules = s.enter(d.dir, entries, outer)
	}
	var system []string
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		if d.isSystem(e) {
			system = append(system, e.Name)
			return true
		}
		return s.ctx.Err() != nil || d.ignores(e) || s.o.Exclude != nil && s.o.Exclude(d.dir.ref, e)
	})
	first := entries
	if len(entries) > partSize {
		first = entries[:partSize]
	}
	for part := range slices.Chunk(entries[len(first):], partSize) {
		below = append(below, &scanNode{in: d, part: part})
	}
	for _, e := range entries {
		if e.Type.IsDir() {
			below = append(below, &scanNode{in: d, name: e.Name})
		}
	}
	deliver = s.look(&Folder{Entries: first, System: system, Err: err, dir: d.dir, ref: d.dir.ref})
	d.users.Add(int32(len(below))) // not before look, which may panic
	return deliver, below
}

// ignores reports whether an entry of d is left out.
func (d *scanDir) ignores(e Entry) bool {
	return d.rules != nil && (e.Name == repository || d.rules.Match(e.Name, kindOf(e)) == gitignore.Ignored)
}

// isSystem reports whether e is a directory in which the system shows its own state instead of
// files.
func (d *scanDir) isSystem(e Entry) bool {
	return len(d.dir.at.names) == 0 && d.dir.at.top == "/" && e.Type.IsDir() && slices.Contains([]string{"dev", "proc", "sys"}, e.Name)
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

// rulesAbove returns the matcher of the parent of d, with the rules from the root down. It is nil
// for a root, and if d is in an ignored directory: a scan that starts there is meant to see it.
func (s *scan) rulesAbove(d *Directory) *gitignore.Matcher {
	if d.ref.rel == "." {
		return nil
	}
	names := strings.Split(d.ref.rel, "/")
	dir, err := s.w.openRootDir(d.ref.root.Index)
	var rules *gitignore.Matcher
	for i := 0; err == nil; i++ {
		_, repositoryErr := dir.lstat(repository)
		rules = s.matcher(dir, rules, repositoryErr == nil, s.parse(dir, ruleFile))
		if i == len(names)-1 {
			break
		}
		if rules.Match(names[i], gitignore.Directory) == gitignore.Ignored {
			rules = nil
		}
		above := dir
		dir, err = above.openDir(names[i])
		_ = above.Close()
	}
	if err != nil {
		return nil
	}
	_ = dir.Close()
	if rules.Match(names[len(names)-1], gitignore.Directory) == gitignore.Ignored {
		return nil
	}
	return rules
}

// enter returns the matcher of dir, which has these entries. outer is that of the parent.
func (s *scan) enter(dir *Directory, entries []Entry, outer *gitignore.Matcher) *gitignore.Matcher {
	named := func(name string) (Entry, bool) {
		i, ok := slices.BinarySearchFunc(entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
		if !ok {
			return Entry{}, false
		}
		return entries[i], true
	}
	var own *gitignore.Rules
	if e, ok := named(ruleFile); ok && e.Type.IsRegular() {
		own = s.parse(dir, ruleFile)
	}
	_, top := named(repository)
	return s.matcher(dir, outer, top, own)
}

// matcher returns the matcher of dir, which has the rules own. top reports whether dir is the top
// of a repository.
func (s *scan) matcher(dir *Directory, outer *gitignore.Matcher, top bool, own *gitignore.Rules) *gitignore.Matcher {
	switch {
	case top:
		return gitignore.NewMatcher(own, s.excludes(dir))
	case outer == nil:
		return gitignore.NewMatcher(own)
	default:
		return outer.Enter(dir.at.names[len(dir.at.names)-1], own)
	}
}

// excludes returns the rules in .git/info/exclude of dir.
func (s *scan) excludes(dir *Directory) *gitignore.Rules {
	for _, name := range []string{repository, "info"} {
		child, err := dir.openDir(name)
		if err != nil {
			return nil
		}
		defer child.Close()
		dir = child
	}
	return s.parse(dir, "exclude")
}

// parse reads a file of rules. Like git it ignores a file that cannot be read, and a link.
func (s *scan) parse(dir *Directory, name string) *gitignore.Rules {
	info, err := dir.lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRules {
		return nil
	}
	file, err := dir.openFile(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRules+1))
	if err != nil || int64(len(data)) > maxRules {
		return nil
	}
	return gitignore.Parse(data)
}
