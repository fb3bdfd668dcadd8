package sessionstore

import "time"

// NewMemoryAt returns a Memory with another clock.
func NewMemoryAt(now func() time.Time) *Memory {
	m := NewMemory()
	m.now = now
	return m
}
