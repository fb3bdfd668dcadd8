package turns

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Client is a client that may view a session.
type Client interface {
	comparable
	// HasLeft reports whether the client's connection has ended.
	HasLeft() bool
	// Room returns nil if the client has room for another message, otherwise a channel that is
	// closed when that may have changed.
	Room() <-chan struct{}
	// Full is Room for a response, which takes more.
	Full() <-chan struct{}
	// Answers reports whether the client may answer questions. A session does not wait for one that
	// may not, and counts as left by everybody if it has only such viewers.
	Answers() bool
}

// Viewers are the clients that have a session open. All of them are sent the same messages in the
// same order, and none waits for another one: while one client has room, messages for the others
// are kept, and a client for which too much is kept stops being a viewer. Turns may outlive their
// connection, so a session may have no viewer for a while. Its messages are dropped then, and
// questions wait.
type Viewers[C Client] struct {
	options ViewerOptions[C]

	mu      sync.Mutex
	all     []*viewer[C]      // in the order in which they came
	open    map[*Poll[C]]bool // that are not answered, and that Stop ends
	came    chan struct{}     // closed when a client becomes a viewer that may answer
	changed chan struct{}     // closed when a viewer comes, catches up or leaves
	hurried int               // how often Hurry was called without its end
}

// ViewerOptions configure [Viewers].
type ViewerOptions[C Client] struct {
	// Go starts a goroutine that ends soon after its viewer has left.
	Go func(do func())
	// Slow is called after a viewer was dropped because it was too slow.
	Slow func(c C)
	// Patience is how long a viewer may take nothing while messages wait for it. Default: any time.
	Patience time.Duration
}

// NewViewers returns viewers of which c, which opens the session, is the first.
func NewViewers[C Client](c C, o ViewerOptions[C]) *Viewers[C] {
	o.Patience = cmp.Or(o.Patience, math.MaxInt64)
	v := &Viewers[C]{options: o, open: make(map[*Poll[C]]bool),
		came: make(chan struct{}), changed: make(chan struct{})}
	v.add(c, live)
	return v
}

// Joining is a client that becomes a viewer. It is sent nothing yet.
type Joining[C Client] struct{ as *viewer[C] }

// Enter makes c a viewer that is sent nothing until Keep was called. It reports false if c's
// connection has ended.
func (v *Viewers[C]) Enter(c C) (Joining[C], bool) {
	w := v.add(c, entering)
	return Joining[C]{w}, w != nil
}

// Keep keeps the messages for the client from now on. The function that it returns sends what was
// kept, and later messages as they come.
func (j Joining[C]) Keep() (release func()) {
	w := j.as
	w.viewers.mu.Lock()
	defer w.viewers.mu.Unlock()
	w.state = keeping
	return func() {
		w.viewers.mu.Lock()
		defer w.viewers.mu.Unlock()
		w.followLocked()
	}
}

// add adds c to the viewers, in place of the viewer that it may be. It returns nil if c has left.
func (v *Viewers[C]) add(c C, state viewerState) *viewer[C] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.HasLeft() {
		return nil
	}
	w := &viewer[C]{client: c, viewers: v, state: state}
	w.tenure, w.end = context.WithCancel(context.Background())
	if before := v.findLocked(c); before != nil {
		before.end()
		v.all = slices.Clone(v.all)
		v.all[slices.Index(v.all, before)] = w
	} else {
		v.all = append(slices.Clip(v.all), w)
	}
	if c.Answers() {
		close(v.came)
		v.came = make(chan struct{})
	}
	v.changeLocked()
	return w
}

func (v *Viewers[C]) changeLocked() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// findLocked returns the viewer that c is, or nil.
func (v *Viewers[C]) findLocked(c C) *viewer[C] {
	i := slices.IndexFunc(v.all, func(w *viewer[C]) bool { return w.client == c })
	if i < 0 {
		return nil
	}
	return v.all[i]
}

func (v *Viewers[C]) find(c C) *viewer[C] {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.findLocked(c)
}

// Hurry lets messages pass viewers that do not read, because a client waits to become a viewer, until
// done is called once. What these viewers cannot take meanwhile is kept for them.
func (v *Viewers[C]) Hurry() (done func()) {
	hurry := func(by int) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.hurried += by
		v.changeLocked()
	}
	hurry(1)
	return func() { hurry(-1) }
}

// Leave removes c from the viewers, and reports whether it was one. When Leave returns, nothing is
// sent to c any more.
func (v *Viewers[C]) Leave(c C) bool {
	w := v.find(c)
	if w == nil || !w.leave() {
		return false
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	return true
}

func (v *Viewers[C]) removeLocked(w *viewer[C]) {
	w.end()
	w.kept, w.bytes = nil, 0
	v.all = slices.DeleteFunc(slices.Clone(v.all),
		func(other *viewer[C]) bool { return other == w })
	v.changeLocked()
}

// Has reports whether c is a viewer.
func (v *Viewers[C]) Has(c C) bool { return v.find(c) != nil }

// Others returns how many viewers there are besides c.
func (v *Viewers[C]) Others(c C) int { return len(v.besides(c)) }

// OthersAnswer reports whether viewers besides c may answer.
func (v *Viewers[C]) OthersAnswer(c C) bool { return slices.ContainsFunc(v.besides(c), C.Answers) }

func (v *Viewers[C]) besides(c C) []C {
	return slices.DeleteFunc(v.Clients(), func(other C) bool { return other == c })
}

// Clients returns the viewers, in the order in which they came.
func (v *Viewers[C]) Clients() []C {
	all, _ := v.current()
	clients := make([]C, len(all))
	for i, w := range all {
		clients[i] = w.client
	}
	return clients
}

// Alone returns nil if there is a viewer that may answer, otherwise a channel that is closed when
// one comes.
func (v *Viewers[C]) Alone() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.ContainsFunc(v.all, func(w *viewer[C]) bool { return w.client.Answers() }) {
		return nil
	}
	return v.came
}

// Close removes all viewers.
func (v *Viewers[C]) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.all {
		v.removeLocked(w)
	}
}

// current returns the viewers, and a channel that is closed when they change.
func (v *Viewers[C]) current() ([]*viewer[C], <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all, v.changed
}

// Send sends the viewers other than except a message of the given size with send, which must not
// wait. It waits until one of the viewers has room, or all have left. If ctx ends before, the
// message is kept for them.
func (v *Viewers[C]) Send(ctx context.Context, except C, size int, send func(to C) error) {
	for _, w := range v.awaitRoom(ctx) {
		if w.client != except {
			w.send(message[C]{send, size})
		}
	}
}

// awaitRoom returns the viewers once they are not full, or ctx ends.
func (v *Viewers[C]) awaitRoom(ctx context.Context) []*viewer[C] {
	for {
		all, full := v.full()
		if full == nil {
			return all
		}
		select {
		case <-full:
		case <-ctx.Done():
			return all
		}
	}
}

// full returns the viewers, and nil if one of them has room, none reads yet, or a client is in a
// hurry. Otherwise it returns a channel that is closed when that may have changed: the viewers that
// are live have to catch up then.
func (v *Viewers[C]) full() (all []*viewer[C], full <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	reads := func(w *viewer[C]) bool { return w.state >= behind }
	if v.hurried > 0 || slices.ContainsFunc(v.all, (*viewer[C]).takesLocked) ||
		!slices.ContainsFunc(v.all, reads) {
		return v.all, nil
	}
	for _, w := range v.all {
		if w.state == live {
			w.followLocked()
		}
	}
	return v.all, v.changed
}

// Settle waits until c was sent everything that is kept for it and has room for a response, or ctx
// ends. It calls beside once it waits while there are other viewers.
func (v *Viewers[C]) Settle(ctx context.Context, c C, beside func()) {
	beside = sync.OnceFunc(beside)
	for {
		_, changed := v.current()
		full, w := c.Full(), v.find(c)
		if full == nil && (w == nil || !w.isAt(behind)) {
			return
		}
		if v.Others(c) > 0 {
			beside()
		}
		select {
		case <-changed:
		case <-full:
		case <-ctx.Done():
			return
		}
	}
}
