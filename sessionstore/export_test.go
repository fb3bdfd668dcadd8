package sessionstore

import "time"

// NewMemoryAt is a Memory with a clock of the test's.
func NewMemoryAt(now func() time.Time) *Memory {
	m := NewMemory()
	m.now = now
	return m
}
