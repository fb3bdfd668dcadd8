package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sync"
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
