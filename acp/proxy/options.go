package proxy

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/wire"
)

// Options configure a proxy. The zero value is usable.
type Options struct {
	// Logger takes what cannot be passed on, and the child's stderr. Default: discarded.
	Logger *slog.Logger
	// Child is how the process is run. Its Logger is Logger if it has none.
	Child child.Options
	// Wire are the limits of the connection to the child. Params is always opaque; Logger is
	// Logger if it has none; the default of Grace is 100 ms.
	Wire wire.Options
	// StartTimeout is how long the child may take to answer initialize. Default 60 s: some download
	// themselves at their first start.
	StartTimeout time.Duration
	// CancelGrace is how long a turn that ended early waits for the child's answer. Default 5 s.
	CancelGrace time.Duration
	// MaxHeld is the number of messages that are held for sessions which the child has not yet
	// announced; what comes beyond is dropped with a warning. Default 1,000.
	MaxHeld int
	// MaxHeldBytes is the same in bytes of params. Default 4 MiB.
	MaxHeldBytes int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Child.Logger = cmp.Or(o.Child.Logger, o.Logger)
	o.Wire.Logger = cmp.Or(o.Wire.Logger, o.Logger)
	o.Wire.Params = wire.ParamsOpaque
	o.Wire.Grace = cmp.Or(o.Wire.Grace, 100*time.Millisecond)
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute)
	o.CancelGrace = cmp.Or(o.CancelGrace, 5*time.Second)
	o.MaxHeld = cmp.Or(o.MaxHeld, 1000)
	o.MaxHeldBytes = cmp.Or(o.MaxHeldBytes, 4<<20)
	return o
}
