package record

import (
	"log/slog"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// ChildLimit limits how much is recorded of what the children of a session say. Unlike the updates
// of a turn, theirs may go on without an end.
type ChildLimit struct {
	left atomic.Int64 // bytes
	log  *slog.Logger
}

// NewChildLimit returns a limit in bytes.
func NewChildLimit(bytes int64, log *slog.Logger) *ChildLimit {
	l := &ChildLimit{log: log}
	l.left.Store(bytes)
	return l
}

// Admits reports whether u is recorded.
func (l *ChildLimit) Admits(u sessionstore.Update) bool {
	if u.Kind != sessionstore.ChildUpdate {
		return true
	}
	size := int64(len(u.Raw))
	left := l.left.Add(-size)
	if left < 0 && left+size >= 0 {
		l.log.Warn("the subagents of a session say too much: the rest is shown but not stored")
	}
	return left >= 0
}
