package mcpclient

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
)

// Options configure a [Set]. The zero value is usable.
type Options struct {
	// Logger takes what happens to the servers, their stderr and their log messages. Default: discarded.
	Logger *slog.Logger
	// Child is how processes are run. Its Logger is ignored.
	Child process.Options
	// Name and Version are what the servers are told of us. Default "acp-agent", "dev".
	Name, Version string
	// MaxServers is the most servers of a session. Default 64.
	MaxServers int
	// StartTimeout is how long a server may take to start and to answer initialize. Default 60 s: some download
	// themselves at their first start.
	StartTimeout time.Duration
	// ProbeTimeout is how long a server may take to answer server/discover before it is taken for a legacy one. Default 5 s.
	ProbeTimeout time.Duration
	// Wait is how long a listing or a call waits for a server that is starting. Default 15 s.
	Wait time.Duration
	// ListTimeout is how long a server may take to list its tools, prompts or resources. Default 15 s.
	ListTimeout time.Duration
	// CallTimeout is how long a call may take. Default 10 min.
	CallTimeout time.Duration
	// NotifyTimeout is how long a server is waited for when it is told of a change. Default 1 s.
	NotifyTimeout time.Duration
	// StopTimeout is how long a server that is no longer wanted may take to end before it is killed. Default 2 s.
	StopTimeout time.Duration
	// SettleMax bounds the time that a server is given which asks for roots again and again, does not answer a
	// ping, or does not take the answers to its questions. Default 5 s.
	SettleMax time.Duration
	// CheckEvery is how often the roots are looked at. Default 5 s.
	CheckEvery time.Duration
	// Backoff is the wait before a server that ended is started again; it doubles with each time in a row, up to
	// MaxBackoff. Defaults 500 ms, 30 s.
	Backoff, MaxBackoff time.Duration
	// MaxRestarts is how often in a row that is done. Default 5.
	MaxRestarts int
	// Stable is how long a server must have lived to be restarted as if for the first time. Default 1 min.
	Stable time.Duration
	// MaxMessage is the most bytes of a message from a server. A longer one ends the connection. Default 16 MiB.
	MaxMessage int
	// MaxNotices is the most notifications a second that are read from a process, and events from a stream of a remote; the
	// server waits beyond. Default 5,000.
	MaxNotices int
	// MaxQuestions is how many questions of a server may wait for it to take the answers. No more are read then. Default 256.
	MaxQuestions int
	// MaxItems is the most tools, prompts or resources that are taken from a server. Default 1,000.
	MaxItems int
	// MaxList is the most bytes of JSON that such a list may have. What does not fit is left out. Default 4 MiB.
	MaxList int
	// MaxResult is the most bytes of a tool's result that a runtime is given. Default 1 MiB.
	MaxResult int
	// MaxShown is the most bytes of it that the client is shown. Default 64 KiB.
	MaxShown int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Name, o.Version = cmp.Or(o.Name, "acp-agent"), cmp.Or(o.Version, "dev")
	o.MaxServers = cmp.Or(o.MaxServers, 64)
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	o.Wait = cmp.Or(o.Wait, 15*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 15*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Minute)
	o.NotifyTimeout = cmp.Or(o.NotifyTimeout, time.Second)
	o.StopTimeout = cmp.Or(o.StopTimeout, 2*time.Second)
	o.SettleMax = cmp.Or(o.SettleMax, 5*time.Second)
	o.CheckEvery = cmp.Or(o.CheckEvery, 5*time.Second)
	o.Backoff, o.MaxBackoff = cmp.Or(o.Backoff, 500*time.Millisecond), cmp.Or(o.MaxBackoff, 30*time.Second)
	o.MaxRestarts = cmp.Or(o.MaxRestarts, 5)
	o.Stable = cmp.Or(o.Stable, time.Minute)
	o.MaxMessage = cmp.Or(o.MaxMessage, 16<<20)
	o.MaxNotices = cmp.Or(o.MaxNotices, 5000)
	o.MaxQuestions = cmp.Or(o.MaxQuestions, 256)
	o.MaxItems = cmp.Or(o.MaxItems, 1000)
	o.MaxList = cmp.Or(o.MaxList, 4<<20)
	o.MaxResult = cmp.Or(o.MaxResult, 1<<20)
	o.MaxShown = cmp.Or(o.MaxShown, 64<<10)
	return o
}

// Starter bounds how many servers start at once. All sessions of a process share one. It is safe for concurrent use
// and needs no end.
type Starter struct{ slots chan struct{} }

// StarterOptions configure a [Starter].
type StarterOptions struct {
	// Parallel is how many servers start at once. Default 8.
	Parallel int
}

// NewStarter makes a starter.
func NewStarter(o StarterOptions) *Starter {
	return &Starter{slots: make(chan struct{}, cmp.Or(o.Parallel, 8))}
}

// begin waits until a server may start. end is called once it has.
func (s *Starter) begin(ctx context.Context) (end func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
