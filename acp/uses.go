package acp

import "sync"

// uses counts the uses of something that ends when there are none. It is safe for concurrent use.
type uses struct {
	none chan struct{} // closed when there are none any more

	mu    sync.Mutex
	count int
}

// newUses returns uses with one.
func newUses() *uses { return &uses{none: make(chan struct{}), count: 1} }

// add adds one. It reports false if there were none any more.
func (u *uses) add() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count > 0 {
		u.count++
		return true
	}
	return false
}

// remove removes one.
func (u *uses) remove() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count--; u.count == 0 {
		close(u.none)
	}
}
