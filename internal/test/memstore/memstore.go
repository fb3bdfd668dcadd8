// Package memstore gives tests session stores that need no cleaning up.
package memstore

import (
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// New returns an empty store in memory, which is closed at the end of the test.
func New(t interface{ Cleanup(func()) }) *sqlite.Store {
	s := sqlite.NewMemory()
	t.Cleanup(func() { _ = s.Close() })
	return s
}
