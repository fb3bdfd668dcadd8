package workspace

import (
	"slices"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/gitignore"
)

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
