package process

import (
	"cmp"
	"log/slog"
	"time"
)

// Options configure a child. The zero value is usable.
type Options struct {
	// Logger takes the lines of the child's stderr, with the attributes child and pid. Default: discarded.
	Logger *slog.Logger
	// Level is the level of these lines. Default: info.
	Level slog.Level
	// MaxLogLine is the most bytes of one line that are logged; the rest of it is cut.
	// Default 4 KiB, at least 16.
	MaxLogLine int
	// Grace is how long Stop waits for the child to end once its stdin was closed. Default 500 ms.
	Grace time.Duration
	// TermGrace is how long the group has between SIGTERM and SIGKILL. Default 500 ms.
	TermGrace time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxLogLine = max(cmp.Or(o.MaxLogLine, 4<<10), 16)
	o.Grace = cmp.Or(o.Grace, 500*time.Millisecond)
	o.TermGrace = cmp.Or(o.TermGrace, 500*time.Millisecond)
	return o
}
