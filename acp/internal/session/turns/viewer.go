package turns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// viewer is a client that has the session open, and what it is still to be sent.
type viewer[C Client] struct {
	client  C
	viewers *Viewers[C]
	tenure  context.Context // ends when the client has left the session
	end     context.CancelFunc
	sending sync.Mutex // held while a message is sent

	// Guarded by the mutex of the Viewers:
	state viewerState
	kept  []message[C]
	bytes int // of the messages in kept
}

// message is a message to a viewer.
type message[C Client] struct {
	send func(to C) error
	size int
}

// maxKept is how many bytes of messages are kept for a viewer. They are shared by the viewers for
// which they are kept.
const maxKept = 4 << 20

type viewerState int

const (
	entering viewerState = iota // reads what was said so far, and is sent nothing
	keeping                     // is sent nothing yet, but its messages are kept
	behind                      // is sent what is kept
	live                        // is sent messages as they come
)

// isAt reports whether the viewer is in a state.
func (w *viewer[C]) isAt(s viewerState) bool {
	w.viewers.mu.Lock()
	defer w.viewers.mu.Unlock()
	return w.state == s
}

// takesLocked reports whether the viewer is sent messages as they come, and has room.
func (w *viewer[C]) takesLocked() bool {
	return w.state == live && w.tenure.Err() == nil && w.client.Room() == nil
}

// send sends the viewer a message, or keeps it.
func (w *viewer[C]) send(m message[C]) {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.viewers.mu.Lock()
	takes := w.takesLocked()
	w.viewers.mu.Unlock()
	// Another error means that the connection has ended, so the viewer is about to leave.
	isSent := takes && !errors.Is(m.send(w.client), jsonrpc.ErrQueueFull)
	if !isSent && !w.keep(m) {
		w.drop()
	}
}

// keep keeps a message. It reports false if too much is kept.
func (w *viewer[C]) keep(m message[C]) bool {
	w.viewers.mu.Lock()
	defer w.viewers.mu.Unlock()
	switch {
	case w.state == entering, w.tenure.Err() != nil:
		return true
	case w.bytes >= maxKept:
		return false
	}
	w.kept = append(w.kept, m)
	w.bytes += m.size
	if w.state == live {
		w.followLocked()
	}
	return true
}

// followLocked starts to send what is kept, until the viewer has caught up and has room.
func (w *viewer[C]) followLocked() {
	w.state = behind
	w.viewers.options.Go(func() {
		for w.tenure.Err() == nil {
			if room := w.client.Room(); room != nil {
				w.await(room)
			} else if !w.sendKept() {
				return
			}
		}
	})
}

// await waits until room is closed. A viewer that takes nothing for too long is dropped.
func (w *viewer[C]) await(room <-chan struct{}) {
	late := time.NewTimer(w.viewers.options.Patience)
	defer late.Stop()
	select {
	case <-room:
	case <-w.tenure.Done():
	case <-late.C:
		w.drop()
	}
}

// sendKept sends the first message that is kept, and reports whether there was one.
func (w *viewer[C]) sendKept() bool {
	w.sending.Lock()
	defer w.sending.Unlock()
	m, more := w.nextKept()
	if more && errors.Is(m.send(w.client), jsonrpc.ErrQueueFull) {
		w.drop()
	}
	return more
}

// nextKept takes the first message that is kept. If there is none, the viewer has caught up.
func (w *viewer[C]) nextKept() (m message[C], more bool) {
	w.viewers.mu.Lock()
	defer w.viewers.mu.Unlock()
	if w.tenure.Err() != nil {
		return m, false
	}
	if len(w.kept) == 0 {
		w.state, w.kept = live, nil
		w.viewers.changeLocked()
		return m, false
	}
	m = w.kept[0]
	w.kept[0] = message[C]{}
	w.kept = w.kept[1:]
	w.bytes -= m.size
	return m, true
}

// drop removes a viewer that is too slow.
func (w *viewer[C]) drop() {
	if w.leave() {
		w.viewers.options.Slow(w.client)
	}
}

// leave removes the viewer, and reports whether it was one.
func (w *viewer[C]) leave() bool {
	w.viewers.mu.Lock()
	defer w.viewers.mu.Unlock()
	if w.tenure.Err() != nil {
		return false
	}
	w.viewers.removeLocked(w)
	return true
}
