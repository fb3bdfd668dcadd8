package child

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// uses are what a process is needed for: users, such as sessions, and pins. A pin keeps it from
// being stopped as idle: during the opening of a session, and requests to and from it. A process
// that is about to end gets no more of them.
type uses struct {
	life    context.Context         // of the process
	stop    context.CancelCauseFunc // ends life
	lasting bool                    // the process lives on without users

	mu     sync.Mutex
	users  int
	pins   int
	active bool // it was started, or unpinned, since stopIfIdle
}

// Unpin removes a pin.
type Unpin func()

// After returns work that removes the pin at its end. Without work it removes the pin now.
func (u Unpin) After(work backend.Work) backend.Work {
	if work == nil {
		u()
		return nil
	}
	return func() (backend.Raw, error) {
		defer u()
		return work()
	}
}

// AddUser adds a user and a pin, and returns what removes the pin. It returns nil if the process is
// about to end.
func (c *Process) AddUser() Unpin { return c.uses.add(1) }

// Pin adds a pin, and returns what removes it. It returns nil if the process is about to end.
func (c *Process) Pin() Unpin { return c.uses.add(0) }

// RemoveUser removes a user. A process other than the main one ends with its last user.
func (c *Process) RemoveUser(ctx context.Context) error {
	if c.uses.removeUser() {
		return c.close(ctx)
	}
	return nil
}

// add adds users and a pin.
func (us *uses) add(users int) Unpin {
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.life.Err() != nil {
		return nil
	}
	us.users += users
	us.pins++
	return us.unpin
}

func (us *uses) unpin() {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.pins--
	us.active = true
}

// removeUser removes a user. It reports whether that was the last one for which the process lived.
func (us *uses) removeUser() (last bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.users--
	last = us.users == 0 && !us.lasting
	if last {
		us.stop(nil)
	}
	return last
}

// stopIfIdle stops the process if there was nothing to do for it since the last call.
func (us *uses) stopIfIdle() (stopped bool) {
	us.mu.Lock()
	defer us.mu.Unlock()
	stopped = !us.active && us.pins == 0
	us.active = false
	if stopped {
		us.stop(nil)
	}
	return stopped
}
