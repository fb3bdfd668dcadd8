// Package budget limits how many bytes of messages a server holds: of those that are arriving, and
// of those that are not answered yet, for each user and in all.
//
// A message that arrives waits while there is no room, so that its sender waits too. A request that
// has arrived is refused instead, because what it would wait for may come behind it. Small messages
// that arrive are not counted, and each user has a little room in any case, so that nobody is shut
// out by others.
package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Small is the size up to which a message that arrives is not counted.
	Small = 64 << 10
	// ensured is how many bytes of unanswered requests each user may have, whatever others do.
	ensured = 1 << 20
	// minimum is how much of a message must arrive in Limits.Stall while others wait for its room.
	minimum = 64 << 10
)

// Limits are the limits of a [Budget], in bytes.
type Limits struct {
	PerUser, Total int
	// Message is the size of the largest message. The message that has been arriving for longest
	// may exceed the other limits by that much, so that messages which wait for each other end.
	Message int
	// Stall is how long a message may be without progress while others wait for its room. Default
	// 10 s.
	Stall time.Duration
}

// Budget counts the bytes of a server. It is safe for concurrent use. The nil Budget has no limits.
type Budget struct {
	limits Limits

	mu      sync.Mutex
	total   int
	users   map[string]int // bytes, by user
	uploads []*Upload      // that arrive, the oldest first
	changed chan struct{}  // closed when there may be more room
	swept   time.Time      // when the progress of uploads was last examined
}

// New returns a budget of which nothing is used.
func New(l Limits) *Budget {
	if l.Stall == 0 {
		l.Stall = 10 * time.Second
	}
	return &Budget{limits: l, users: make(map[string]int), changed: make(chan struct{})}
}

// Reserve counts n bytes of a request of user, until Release. It returns false if there is no room
// for them.
func (b *Budget) Reserve(user string, n int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.users[user] + n
	if used > ensured && (used > b.limits.PerUser || b.total+n > b.limits.Total) {
		return false
	}
	b.addLocked(user, n)
	return true
}

// Release undoes Reserve, and gives back what an [Upload] has kept.
func (b *Budget) Release(user string, n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addLocked(user, -n)
}

// Used returns how many bytes are counted. Tests of what uses a budget call it.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

func (b *Budget) addLocked(user string, n int) {
	b.total += n
	if b.users[user] += n; b.users[user] == 0 {
		delete(b.users, user)
	}
	if n < 0 {
		b.changeLocked()
	}
}

// changeLocked lets those who wait look again.
func (b *Budget) changeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Upload is a message that arrives.
type Upload struct {
	budget   *Budget
	user     string
	end      func() // ends the message
	progress atomic.Int64

	// Guarded by Budget.mu:
	held    int
	begun   bool // in Budget.uploads
	waiting bool
	own     bool  // it waits for room of its user, not of all
	seen    int64 // progress when it was examined last
}

// Upload returns a message of user that begins to arrive. end is called, once at most, if the
// message makes no progress while others need its room; it makes the message fail.
func (b *Budget) Upload(user string, end func()) *Upload {
	return &Upload{budget: b, user: user, end: sync.OnceFunc(end)}
}

// Arrived notes that n more bytes have arrived.
func (u *Upload) Arrived(n int) { u.progress.Add(int64(n)) }

// Grow makes room for a message of size bytes. It waits until there is room, and calls waiting
// regularly until then. It fails if ctx ends.
func (u *Upload) Grow(ctx context.Context, size int, waiting func()) error {
	b := u.budget
	if b == nil || size <= Small {
		return nil
	}
	tick := time.NewTicker(b.limits.Stall / 10)
	defer tick.Stop()
	for {
		changed, ok := u.tryGrow(size)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
			waiting()
			if slow := b.slowest(u); slow != nil {
				slow.end()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryGrow makes room for a message of size bytes, or returns a channel that is closed when there
// may be some.
func (u *Upload) tryGrow(size int) (changed <-chan struct{}, ok bool) {
	b := u.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if !u.begun {
		u.begun = true
		b.uploads = append(b.uploads, u)
	}
	n := size - u.held
	perUser, total := b.limits.PerUser, b.limits.Total
	if b.oldestLocked(func(o *Upload) bool { return o.user == u.user }) == u {
		perUser += b.limits.Message
	}
	if b.uploads[0] == u {
		total += b.limits.Message
	}
	u.own = b.users[u.user]+n > perUser
	u.waiting = u.own || b.total+n > total
	if u.waiting {
		return b.changed, false
	}
	u.held += n
	b.addLocked(u.user, n)
	return nil, true
}

func (b *Budget) oldestLocked(is func(*Upload) bool) *Upload {
	for _, u := range b.uploads {
		if is(u) {
			return u
		}
	}
	return nil
}

// slowest returns a message that has made no progress for a while and whose room u needs, or nil.
func (b *Budget) slowest(u *Upload) *Upload {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.swept) < b.limits.Stall {
		return nil
	}
	// What was seen long ago says nothing: then the first look only notes the progress.
	compares := time.Since(b.swept) < 2*b.limits.Stall
	b.swept = time.Now()
	var slow *Upload
	for _, o := range b.uploads {
		now := o.progress.Load()
		if compares && slow == nil && !o.waiting && now-o.seen < minimum &&
			(o.user == u.user || !u.own) {
			slow = o
		}
		o.seen = now
	}
	return slow
}

// Finish says that nothing more of the message arrives. Its size bytes stay counted until
// [Budget.Release], unless they are few; a message that failed has the size 0. Finish returns how
// many bytes stay counted.
func (u *Upload) Finish(size int) int {
	b := u.budget
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !u.begun {
		return 0
	}
	for i, o := range b.uploads {
		if o == u {
			b.uploads = append(b.uploads[:i:i], b.uploads[i+1:]...)
			break
		}
	}
	b.addLocked(u.user, Counted(size)-u.held)
	u.held = 0
	b.changeLocked() // another one may be the oldest
	return Counted(size)
}

// Counted returns how many of the bytes of a message that has arrived are counted until it is read.
func Counted(size int) int {
	if size <= Small {
		return 0
	}
	return size
}
