package acp

import "sync"

// uses counts the uses of something that ends after the last. It is safe for concurrent use.
type uses struct {
	none chan struct{} // closed after the last

	mu    sync.Mutex
	count int
}

// newUses returns uses with one.
func newUses() *uses { return &uses{none: make(chan struct{}), count: 1} }

// add adds one. It reports false after the last has ended.
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
