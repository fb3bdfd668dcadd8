// Package budget limits how many bytes of messages a server holds: of those that are arriving, and
// of those that are not answered yet, for each user and in all.
//
// Of the large messages of a user, one arrives at a time, and the next one waits until it is
// handled, so that its sender waits too. A request that has arrived is refused instead, because
// what it would wait for may come behind it. Small messages that arrive are not counted, and each
// user has a little room in any case, so that nobody is shut out by others.
package budget

import (
	"cmp"
	"context"
	"sync"
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
	// Message is the size of the largest message. One may exceed the other limits by that much, so
	// that large messages arrive in any case.
	Message int
	// Stall is how long a message may stand still while others wait for its room. Default 10 s.
	Stall time.Duration
}

// Budget counts the bytes of a server. It is safe for concurrent use. The nil Budget has no limits.
type Budget struct {
	limits Limits

	mu      sync.Mutex
	total   int
	users   map[string]int    // bytes of unanswered requests and unread output
	large   map[string]*Large // by user
	changed chan struct{}     // closed when there may be more room
}

// New returns a budget of which nothing is used.
func New(l Limits) *Budget {
	l.Stall = cmp.Or(l.Stall, 10*time.Second)
	return &Budget{limits: l, users: make(map[string]int), large: make(map[string]*Large),
		changed: make(chan struct{})}
}

// User counts one user against a budget. The zero User has no limits.
type User struct {
	budget *Budget
	name   string
}

// Of returns what the budget counts for the user with this name.
func (b *Budget) Of(name string) User { return User{b, name} }

// Reserve counts n bytes of a request, until Release. It returns false if they exceed the budget.
func (u User) Reserve(n int) bool {
	b := u.budget
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.users[u.name] + n
	if used > ensured && (used > b.limits.PerUser || b.total+n > b.limits.Total) {
		return false
	}
	b.total, b.users[u.name] = b.total+n, used
	return true
}

// Release undoes Reserve.
func (u User) Release(n int) {
	b := u.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users[u.name] -= n; b.users[u.name] == 0 {
		delete(b.users, u.name)
	}
	b.freeLocked(n)
}

// freeLocked gives back n bytes, and lets those who wait look again.
func (b *Budget) freeLocked(n int) {
	b.total -= n
	close(b.changed)
	b.changed = make(chan struct{})
}

// Used returns how many bytes are counted. Tests of what uses a budget call it.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Large is a message that is not small, from when it begins to arrive until it is handled. Its
// methods may be called on nil.
type Large struct {
	user User
	end  func() // ends the message

	// Guarded by Budget.mu:
	held  int       // bytes that are counted
	news  int       // bytes that arrived since moved
	moved time.Time // when so much had arrived last that others go on waiting; zero if all has
}

// Begin makes room for a large message. It waits until there is room, and calls waiting regularly
// until then. It fails if ctx ends. end is called, perhaps several times, if the message makes no
// progress while others need its room; it makes the message fail.
func (u User) Begin(ctx context.Context, end, waiting func()) (*Large, error) {
	b := u.budget
	if b == nil {
		return nil, nil
	}
	l := &Large{user: u, end: end}
	tick := time.NewTicker(b.limits.Stall / 10)
	defer tick.Stop()
	for {
		changed, stalled := b.begin(l)
		if changed == nil {
			return l, nil
		}
		for _, other := range stalled {
			other.end()
		}
		select {
		case <-changed:
		case <-tick.C:
			waiting()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin makes room for a message, or returns a channel that is closed when there may be some, and
// the messages that stand in its way without progress.
func (b *Budget) begin(l *Large) (changed <-chan struct{}, stalled []*Large) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.large[l.user.name]
	if own == nil && (len(b.large) == 0 || b.total+b.limits.Message <= b.limits.Total) {
		l.held, l.moved = b.limits.Message, time.Now()
		b.total, b.large[l.user.name] = b.total+l.held, l
		return nil, nil
	}
	for _, other := range b.large {
		if (own == nil || other == own) && !other.moved.IsZero() &&
			time.Since(other.moved) >= b.limits.Stall {
			stalled = append(stalled, other)
		}
	}
	return b.changed, stalled
}

// Arrived notes that n more bytes have arrived.
func (l *Large) Arrived(n int) {
	if l == nil {
		return
	}
	l.user.budget.mu.Lock()
	defer l.user.budget.mu.Unlock()
	if l.news += n; l.news >= minimum {
		l.news, l.moved = 0, time.Now()
	}
}

// Complete says that the message has arrived, with n bytes.
func (l *Large) Complete(n int) {
	if l == nil {
		return
	}
	l.user.budget.mu.Lock()
	defer l.user.budget.mu.Unlock()
	l.moved = time.Time{}
	l.user.budget.freeLocked(l.held - n)
	l.held = n
}

// Done says that the message is handled, or has failed.
func (l *Large) Done() {
	if l == nil {
		return
	}
	l.user.budget.mu.Lock()
	defer l.user.budget.mu.Unlock()
	delete(l.user.budget.large, l.user.name)
	l.user.budget.freeLocked(l.held)
}
