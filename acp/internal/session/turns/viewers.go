package turns

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
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

// maxKept is how many bytes of messages are kept for a viewer. They are shared by the viewers for
// which they are kept.
const maxKept = 4 << 20

// viewer is a client that has the session open.
type viewer[C Client] struct {
	client C
	tenure context.Context // ends when it is no viewer any more
	end    context.CancelFunc
	// sending is held while a message is sent.
	sending sync.Mutex

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

type viewerState int

const (
	entering viewerState = iota // reads what was said so far, and is sent nothing
	keeping                     // is sent nothing yet, but its messages are kept
	behind                      // is sent what is kept
	live                        // is sent messages as they come
)

// NewViewers returns viewers of which c, which opens the session, is the first.
func NewViewers[C Client](c C, o ViewerOptions[C]) *Viewers[C] {
	o.Patience = cmp.Or(o.Patience, math.MaxInt64)
	v := &Viewers[C]{options: o, open: make(map[*Poll[C]]bool),
		came: make(chan struct{}), changed: make(chan struct{})}
	v.add(c, live)
	return v
}

// Enter makes c a viewer that is sent nothing until Keep and then Release are called. It reports
// false if c's connection has ended.
func (v *Viewers[C]) Enter(c C) bool { return v.add(c, entering) }

func (v *Viewers[C]) add(c C, state viewerState) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.HasLeft() {
		return false
	}
	w := &viewer[C]{client: c, state: state}
	w.tenure, w.end = context.WithCancel(context.Background())
	if i := v.indexLocked(c); i >= 0 {
		v.all[i].end()
		v.all = slices.Clone(v.all)
		v.all[i] = w
	} else {
		v.all = append(slices.Clip(v.all), w)
	}
	if c.Answers() {
		close(v.came)
		v.came = make(chan struct{})
	}
	v.changeLocked()
	return true
}

func (v *Viewers[C]) changeLocked() {
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *Viewers[C]) indexLocked(c C) int {
	return slices.IndexFunc(v.all, func(w *viewer[C]) bool { return w.client == c })
}

// Hurry lets messages pass viewers that do not read, until done is called, because a client waits
// to become a viewer. What these viewers cannot take meanwhile is kept for them.
func (v *Viewers[C]) Hurry() (done func()) {
	v.hurry(1)
	return sync.OnceFunc(func() { v.hurry(-1) })
}

func (v *Viewers[C]) hurry(by int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hurried += by
	v.changeLocked()
}

// Keep keeps the messages for c, which has entered, from now on.
func (v *Viewers[C]) Keep(c C) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := v.indexLocked(c); i >= 0 && v.all[i].state == entering {
		v.all[i].state = keeping
	}
}

// Release sends c what was kept for it, and later messages as they come.
func (v *Viewers[C]) Release(c C) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := v.indexLocked(c); i >= 0 && v.all[i].state == keeping {
		v.followLocked(v.all[i])
	}
}

// Leave removes c from the viewers, and reports whether it was one. When Leave returns, nothing is
// sent to c any more.
func (v *Viewers[C]) Leave(c C) bool {
	v.mu.Lock()
	i := v.indexLocked(c)
	if i < 0 {
		v.mu.Unlock()
		return false
	}
	w := v.all[i]
	v.removeLocked(i)
	v.mu.Unlock()
	w.sending.Lock()
	defer w.sending.Unlock()
	return true
}

func (v *Viewers[C]) removeLocked(i int) {
	w := v.all[i]
	w.end()
	w.kept, w.bytes = nil, 0
	v.all = slices.Delete(slices.Clone(v.all), i, i+1)
	v.changeLocked()
}

// Has reports whether c is a viewer.
func (v *Viewers[C]) Has(c C) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.indexLocked(c) >= 0
}

// Others returns how many viewers there are besides c.
func (v *Viewers[C]) Others(c C) int {
	return len(slices.DeleteFunc(v.Clients(), func(other C) bool { return other == c }))
}

// OthersAnswer reports whether viewers besides c may answer.
func (v *Viewers[C]) OthersAnswer(c C) bool {
	return slices.ContainsFunc(v.Clients(), func(other C) bool {
		return other != c && other.Answers()
	})
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
	for len(v.all) > 0 {
		v.removeLocked(0)
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
		if w.client == except {
			continue
		}
		// An error means that the connection has ended, so the viewer is about to leave.
		w.sending.Lock()
		if !v.takes(w) || errors.Is(send(w.client), jsonrpc.ErrQueueFull) {
			v.fallBehind(w, message[C]{send, size})
		}
		w.sending.Unlock()
	}
}

// takes reports whether a viewer is sent messages as they come, and has room.
func (v *Viewers[C]) takes(w *viewer[C]) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return w.state == live && w.tenure.Err() == nil && w.client.Room() == nil
}

// fallBehind keeps a message for a viewer. A viewer that is live follows from now on.
func (v *Viewers[C]) fallBehind(w *viewer[C], m message[C]) {
	v.mu.Lock()
	if w.state == entering || w.tenure.Err() != nil {
		v.mu.Unlock()
		return
	}
	full := w.bytes >= maxKept
	if !full {
		w.kept = append(w.kept, m)
		w.bytes += m.size
		if w.state == live {
			v.followLocked(w)
		}
	}
	v.mu.Unlock()
	if full {
		v.drop(w)
	}
}

// followLocked starts to send a viewer what is kept for it, until it has caught up and has room.
func (v *Viewers[C]) followLocked(w *viewer[C]) {
	w.state = behind
	v.options.Go(func() {
		for w.tenure.Err() == nil {
			if room := w.client.Room(); room != nil {
				v.await(w, room)
			} else if !v.sendKept(w) {
				return
			}
		}
	})
}

// await waits until room, that of a viewer, is closed. A viewer that takes nothing for too long is
// dropped.
func (v *Viewers[C]) await(w *viewer[C], room <-chan struct{}) {
	late := time.NewTimer(v.options.Patience)
	defer late.Stop()
	select {
	case <-room:
	case <-w.tenure.Done():
	case <-late.C:
		v.drop(w)
	}
}

// sendKept sends a viewer the first message that is kept for it, and reports whether there was one.
func (v *Viewers[C]) sendKept(w *viewer[C]) bool {
	w.sending.Lock()
	defer w.sending.Unlock()
	m, more := v.nextKept(w)
	if more && errors.Is(m.send(w.client), jsonrpc.ErrQueueFull) {
		v.drop(w)
	}
	return more
}

// nextKept takes the first message that is kept for a viewer. If there is none, the viewer has
// caught up.
func (v *Viewers[C]) nextKept(w *viewer[C]) (m message[C], more bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.tenure.Err() != nil {
		return m, false
	}
	if len(w.kept) == 0 {
		w.state, w.kept = live, nil
		v.changeLocked()
		return m, false
	}
	m = w.kept[0]
	w.kept[0] = message[C]{}
	w.kept = w.kept[1:]
	w.bytes -= m.size
	return m, true
}

// drop removes a viewer that is too slow.
func (v *Viewers[C]) drop(w *viewer[C]) {
	v.mu.Lock()
	i := slices.Index(v.all, w)
	if i < 0 {
		v.mu.Unlock()
		return
	}
	v.removeLocked(i)
	v.mu.Unlock()
	v.options.Slow(w.client)
}

// awaitRoom returns the viewers once one of those that read has room, or none reads yet, or ctx
// ends.
func (v *Viewers[C]) awaitRoom(ctx context.Context) []*viewer[C] {
	for {
		all, changed := v.current()
		if ctx.Err() != nil || !v.full(all) {
			return all
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// full reports whether no viewer has room. Those that are live have to catch up then.
func (v *Viewers[C]) full(all []*viewer[C]) (full bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range all {
		if w.state == live && w.client.Room() == nil {
			return false
		}
		full = full || w.state >= behind
	}
	if v.hurried > 0 {
		return false
	}
	for _, w := range all {
		if w.state == live && w.tenure.Err() == nil {
			v.followLocked(w)
		}
	}
	return full
}

// Settle waits until c was sent everything that is kept for it and has room for a response, or ctx
// ends; if alone is true, only while there are no other viewers. It reports false if there are.
func (v *Viewers[C]) Settle(ctx context.Context, c C, alone bool) bool {
	for {
		_, changed := v.current()
		full := c.Full()
		switch {
		case !v.isBehind(c) && full == nil:
			return true
		case alone && v.Others(c) > 0:
			return false
		}
		select {
		case <-changed:
		case <-full:
		case <-ctx.Done():
			return true
		}
	}
}

// isBehind reports whether messages are kept for c, which is sent them.
func (v *Viewers[C]) isBehind(c C) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := v.indexLocked(c)
	return i >= 0 && v.all[i].state == behind
}

// errDetached ends a wait for a client that no longer has the session.
var errDetached = errors.New("the session is no longer open in this client")

// during returns a context that also ends with a tenure. The caller calls cancel.
func during(ctx, tenure context.Context) (limited context.Context, cancel func()) {
	limited, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(tenure, func() { end(errDetached) })
	return limited, func() {
		stop()
		end(nil)
	}
}

// Caller sends a client a request. If it is not nil, onResponse is called when the client answers,
// even if nobody waits for the answer any more.
type Caller[C Client] func(
	ctx context.Context, to C, onResponse func(result backend.Raw, err error),
) backend.Work

// Call sends a request to the first viewer that accepts takes, with send. It fails if there is
// none, or if that leaves before it answers.
func (v *Viewers[C]) Call(ctx context.Context, accepts func(C) error, send Caller[C]) backend.Work {
	err := errDetached
	all, _ := v.current()
	for _, w := range all {
		if refused := accepts(w.client); refused != nil {
			err = refused
			continue
		}
		ctx, cancel := during(ctx, w.tenure)
		work := send(ctx, w.client, nil)
		return func() (backend.Raw, error) {
			defer cancel()
			return work()
		}
	}
	return jsonrpc.Fail(err)
}
