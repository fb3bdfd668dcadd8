package workspace

import "sync"

// Workspace is an opened root set. It is safe for concurrent use. [Open] makes one,
// and Close ends it: operations that run finish, later ones fail with [ErrClosed].
//
// Its methods take paths as an operating system does: links are followed as far as clause A23
// allows, ".." is the parent of where one really is, and a relative path starts at cwd. Their
// errors are [*OutsideError], [*TooManyLinksError], [*DeniedError], [*MountError], [*SpecialFileError],
// ErrClosed, or what the system said in an *[fs.PathError].
type Workspace struct {
	roots   Roots
	opened  []Root
	handles []*handle  // of opened, one each
	real    []location // of opened, one each
	doors   []door
	denied  []denial

	maxEntries int
	buffers    sync.Pool // of *[]byte, to list directories with

	mu      sync.Mutex
	running int
	closed  bool
}

// Roots is the root set that was opened.
func (w *Workspace) Roots() Roots { return w.roots }

// Opened are the roots in order, cwd first. The caller owns the slice.
func (w *Workspace) Opened() []Root { return append([]Root(nil), w.opened...) }

// Root is root i, cwd for 0. It panics if i is out of range.
func (w *Workspace) Root(i int) Root { return w.opened[i] }

// Close makes every later operation fail with [ErrClosed], and waits for none. The
// directories are let go when the last running operation has ended. Files and directories
// that were opened stay readable until they are closed. A second Close does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.release()
	return nil
}

// begin enters an operation, which must end with end.
func (w *Workspace) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running++
	return nil
}

func (w *Workspace) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.release()
}

// buffer is one to list a directory with, which goes back to buffers.
func (w *Workspace) buffer() *[]byte {
	if buf, ok := w.buffers.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, listingBuffer)
	return &buf
}

// release lets the directories go once nobody needs them. The caller holds mu.
func (w *Workspace) release() {
	if w.closed && w.running == 0 {
		closeAll(w.handles)
	}
}

func closeAll(handles []*handle) {
	for _, handle := range handles {
		_ = handle.Close()
	}
}
