package workspace

import (
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

// IgnoredFiles says what a scan makes of what git ignores.
type IgnoredFiles int

const (
	// KeepIgnored: a scan looks at everything.
	KeepIgnored IgnoredFiles = iota
	// LeaveIgnored: a scan leaves out what git ignores, and ".git" itself. The rules are those of each
	// .gitignore from the top of the repository down, and of its .git/info/exclude. Of a repository whose
	// top lies above the root, only the rules inside the root are known. Where there is no
	// repository, every .gitignore counts; a repository inside another has only its own.
	LeaveIgnored
)

// The bounds of a scan where ScanOptions name no others.
const (
	DefaultMaxScanDepth = 256
	DefaultMaxRules     = 1 << 20
)

// ScanOptions configure [Workspace.Scan].
type ScanOptions struct {
	// Workers is how many folders are looked at at once. Default: one for each processor that Go uses.
	Workers int
	// Ignored says what becomes of what git ignores. Default KeepIgnored.
	Ignored IgnoredFiles
	// Leave, if not nil, reports whether to leave out an entry of dir, and with a directory all below
	// it. It is called from several goroutines, for what Ignored keeps.
	Leave func(dir Ref, e Entry) bool
	// MaxDepth is the most directories on a way down from the start. What is deeper is a folder whose Err
	// is a *[LimitError]. Default [DefaultMaxScanDepth].
	MaxDepth int
	// MaxRules is the most bytes of a file of ignore rules. A larger one counts as having none.
	// Default [DefaultMaxRules].
	MaxRules int64
}

// Folder is a directory that a scan came by, or a part of a large one. It may be used until the
// look at it ends, from any goroutine.
type Folder struct {
	// Entries are what it has, sorted by name, without what was left out: directories too, and
	// links as links. A part of a large directory has a part of them.
	Entries []Entry
	// Err is why the directory could not be opened, or not be read to its end.
	Err error

	dir *Directory // nil if it could not be opened
	ref Ref
}

// Ref is where the directory is.
func (f *Folder) Ref() Ref { return f.ref }

// RefOf is where one of its entries is.
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

// Scan looks at the directory start and at all directories below it, several at once, and delivers
// what it found in order. look is called once for each folder, from several goroutines; what it
// returns, unless nil, is called afterwards: never two at once, and in the same order each time, in which a
// directory comes before those in it, and these are sorted by name. So
// a search reads in look, and reports in what look returns:
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
// If a delivery fails, or ctx ends, nothing is delivered any more, and Scan returns why once every look
// has ended; for [fs.SkipAll] it returns nil. A directory that cannot be opened or read is a folder
// with Err set, and the scan goes on. Links are not followed: [Folder.Open] follows one to a
// file. Like [Workspace.Walk] it goes from handle to handle. What is found ahead of its turn
// is bounded, and so is the number of directories held open, by some hundreds.
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

// scan is a running Scan. Its nodes are a list in the order of delivery: each is looked at, replaced by
// what it has below it, and delivered once it is the first. Workers take the first that nobody
// has taken, so that the head never waits for anything but its own look.
type scan struct {
	w    *Workspace
	ctx  context.Context
	o    ScanOptions
	look func(*Folder) func() error

	mu         sync.Mutex
	changed    *sync.Cond
	head       *scanNode
	ahead      int // nodes that are done and not delivered
	delivering bool
	err        error // why it stops
	crash      *crash
}

// maxAhead is how many folders may be done before their turn.
const maxAhead = 128

func newScan(w *Workspace, ctx context.Context, o ScanOptions, look func(*Folder) func() error) *scan {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = DefaultMaxScanDepth
	}
	if o.MaxRules <= 0 {
		o.MaxRules = DefaultMaxRules
	}
	s := &scan{w: w, ctx: ctx, o: o, look: look}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// run works until everything was delivered, or something fails.
func (s *scan) run() error {
	var others sync.WaitGroup
	for range s.o.Workers - 1 {
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

// work looks at one node after the other.
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
		s.outside(func() { deliver, below = s.visit(n) })
		n.done(deliver, below)
		s.ahead++
		s.deliver()
		s.changed.Broadcast()
	}
}

// take is the first node that nobody has taken, nil if there is none or enough is done ahead.
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

// deliver delivers what is done at the head of the list, unless somebody is at it.
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
		s.outside(func() { err = deliver() })
		if err != nil {
			s.fail(err)
		}
	}
	s.delivering = false
}

// outside calls do without mu, which the caller holds. A panic stops the scan; run has it go on in the caller of Scan, who
// may recover from it.
func (s *scan) outside(do func()) {
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

// scanState is how far a node of a scan is.
type scanState int

const (
	waiting scanState = iota
	taken
	finished
)

// partSize is the most entries of a folder. A larger directory is looked at in parts, so that several
// workers share it.
const partSize = 512

// scanNode is a directory that is to be looked at, or a part of one.
type scanNode struct {
	in   *scanDir // for a part: the directory; else the one that it is in, or the start
	name string   // in that directory; "" for a part, and for the start
	part []Entry

	state   scanState
	deliver func() error
	next    *scanNode
}

// done ends the node, and puts what is below it behind it.
func (n *scanNode) done(deliver func() error, below []*scanNode) {
	n.in, n.part = nil, nil
	n.state, n.deliver = finished, deliver
	for _, b := range slices.Backward(below) {
		b.next = n.next
		n.next = b
	}
}

// scanDir is an open directory of a scan. Nodes share it; the last one closes it.
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

// top is the node of the start.
func (s *scan) top(d *Directory) *scanNode {
	top := newScanDir(d, 0)
	if s.o.Ignored == LeaveIgnored {
		top.rules = s.rulesAbove(d)
	}
	return &scanNode{in: top}
}

// visit looks at a node. It returns what look does, and the nodes that are to follow.
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

// read reads d and looks at it. outer are the rules of the directory that it is in, or for the start of
// those above it.
func (s *scan) read(d *scanDir, outer *gitignore.Matcher) (deliver func() error, below []*scanNode) {
	entries, err := d.dir.Entries(s.ctx)
	if s.o.Ignored == LeaveIgnored {
		d.rules = s.enter(d.dir, entries, outer)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return s.ctx.Err() != nil || s.leaves(d, e) })
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
	deliver = s.look(&Folder{Entries: first, Err: err, dir: d.dir, ref: d.dir.ref})
	d.users.Add(int32(len(below))) // not before look, which may panic
	return deliver, below
}

// leaves reports whether an entry of d is left out.
func (s *scan) leaves(d *scanDir, e Entry) bool {
	if d.rules != nil && (e.Name == repository || d.rules.Match(e.Name, kindOf(e)) == gitignore.Ignored) {
		return true
	}
	return s.o.Leave != nil && s.o.Leave(d.dir.ref, e)
}

func kindOf(e Entry) gitignore.Kind {
	if e.Type.IsDir() {
		return gitignore.Directory
	}
	return gitignore.File
}

// The names that git gives to what says what it ignores.
const (
	repository = ".git"
	ruleFile   = ".gitignore"
)

// rulesAbove is the matcher of the directory that holds d, from the root that owns it down. It is nil if
// there is none, or if d is in a directory that is ignored: whoever starts there wants what is in it.
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

// enter is the matcher of dir, which has these entries. outer is that of the directory above.
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

// matcher is the matcher of dir, whose own rules are these. top reports whether it is that of a repository.
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

// excludes are the rules of the repository whose top dir is.
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

// parse reads a file of rules. One that cannot be read has none, as for git, which does not follow a
// link to one either.
func (s *scan) parse(dir *Directory, name string) *gitignore.Rules {
	info, err := dir.lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > s.o.MaxRules {
		return nil
	}
	file, err := dir.openFile(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, s.o.MaxRules+1))
	if err != nil || int64(len(data)) > s.o.MaxRules {
		return nil
	}
	return gitignore.Parse(data)
}
