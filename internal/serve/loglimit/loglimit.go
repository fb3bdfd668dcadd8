// Package loglimit limits how much a log grows because of one user of a server, or of somebody who
// is not known to it. What is left out is counted, and the log says how much it was.
package loglimit

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// window is how long records are counted before the counts start again.
	window = time.Minute
	// perMessage is how many records with the same message a user may cause in a window, and
	// perUser how many altogether. The first of each message, up to always, have room beyond that,
	// so that no message hides the others.
	perMessage, perUser, always, perUserWithFirst = 300, 600, 20, 2000
	// perStranger is how many records with the same message one address without a user may cause,
	// and perStrangers how many all of them may.
	perStranger, perStrangers = 5, 60
	// unit is the size of the attributes from which on a record counts as several.
	unit = 512
	// delayBurst is how many records a user may cause with [Delay] before they wait, and delayRate
	// how many a second from then on.
	delayBurst, delayRate = 600, 100
	// maxCounted is how many addresses are counted apart. Records about others are left out.
	maxCounted = 10_000
)

// Excess says what happens to the records of a user who causes too many.
type Excess int

const (
	// Omit leaves them out and counts them.
	Omit Excess = iota
	// Delay lets them wait, so that they slow the user down.
	Delay
)

// Omitted is the message of the record that says how many records were left out.
const Omitted = "left out more of the same"

// handler passes records on to the next handler.
type handler struct {
	next   slog.Handler
	source source
	counts *counts
}

// source says who has caused a record: a user, the address of somebody unknown, or, if both are
// "", the server.
type source struct {
	user, address string
	child         bool // one of the user's child processes
}

// childOutput stands for the lines that child processes write, which are messages of their own.
const childOutput = "lines of child processes"

// New returns a logger that passes records on to next within the limits of their source, and a
// function that ends it. The source of a record is the user in its attribute "user", or else the
// address in "from", or the last address in "forwardedFor". Records of the level Info with "child"
// are lines that a child has written. Records below the level Info are not limited, and with
// [Delay] no record of a user is left out.
func New(next *slog.Logger, excess Excess) (limited *slog.Logger, end func()) {
	c := &counts{strangers: next.Handler(), excess: excess, rates: map[string]*rate.Limiter{}}
	return slog.New(&handler{next: next.Handler(), counts: c}), func() { c.flush(true) }
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	s := h.source
	for _, a := range attrs {
		s = s.with(a)
	}
	return &handler{next: h.next.WithAttrs(attrs), source: s, counts: h.counts}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), source: h.source, counts: h.counts}
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && !h.counts.admit(ctx, h, r) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (s source) with(a slog.Attr) source {
	switch a.Key {
	case "user":
		s.user = a.Value.String()
	case "child":
		s.child = true
	case "from":
		if at, err := netip.ParseAddrPort(a.Value.String()); err == nil {
			s.address = network(at.Addr())
		}
	case "forwardedFor":
		all := a.Value.String()
		if at, err := netip.ParseAddr(strings.TrimSpace(all[strings.LastIndex(all, ",")+1:])); err == nil {
			s.address = network(at)
		}
	}
	return s
}

// network returns what one person may have of the addresses around at.
func network(at netip.Addr) string {
	const subnet = 64
	if at = at.Unmap(); at.Is6() {
		if prefix, err := at.Prefix(subnet); err == nil {
			return prefix.String()
		}
	}
	return at.String()
}

// counts counts the records of a window, which begins with a record.
type counts struct {
	strangers slog.Handler // for the records about addresses without a user
	excess    Excess

	mu      sync.Mutex
	rates   map[string]*rate.Limiter // with Delay, by user
	ended   bool
	begun   time.Time
	timer   *time.Timer // ends the window; nil if there is none
	shown   map[key]int // weights of records
	callers map[key]int // those of strangers, by address
	omitted map[key]*omission
}

// key is a message with who has caused it: a user, an address, someStranger, or "" for the server.
// Without a message it stands for all of a user's.
type key struct{ message, by string }

// someStranger stands for all addresses together.
const someStranger = "*"

// omission says how many records were left out.
type omission struct {
	handler   slog.Handler
	level     slog.Level
	count     int
	addresses map[string]bool // of strangers
}

// rate returns the rate at which a user may cause records.
func (c *counts) rate(user string) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rates[user] == nil {
		c.rates[user] = rate.NewLimiter(delayRate, delayBurst)
	}
	return c.rates[user]
}

// admit reports whether a record may be passed on, perhaps after a delay.
func (c *counts) admit(ctx context.Context, h *handler, r slog.Record) bool {
	s, weight := h.source, 1+len(r.Message)/unit
	r.Attrs(func(a slog.Attr) bool {
		if s.user == "" {
			s = s.with(a)
		}
		weight += len(a.Value.String()) / unit
		return true
	})
	if c.excess == Delay && s.user != "" {
		_ = c.rate(s.user).Wait(ctx)
		return true
	}
	k := key{r.Message, s.user}
	switch {
	case s.child && r.Level == slog.LevelInfo:
		k.message = childOutput
	case s.user == "" && s.address != "":
		k.by, h = someStranger, &handler{next: c.strangers}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return true
	case c.timer == nil:
		c.begun, c.timer = time.Now(), time.AfterFunc(window, func() { c.flush(false) })
		c.shown, c.callers, c.omitted = map[key]int{}, map[key]int{}, map[key]*omission{}
	}
	if c.fitsLocked(k, s, weight) {
		return true
	}
	o := c.omitted[k]
	if o == nil {
		o = &omission{handler: h.next, addresses: map[string]bool{}}
		c.omitted[k] = o
	}
	o.count, o.level = o.count+1, max(o.level, r.Level)
	if k.by == someStranger && len(o.addresses) < maxCounted {
		o.addresses[s.address] = true
	}
	return false
}

// fitsLocked reports whether there is room for a record, and counts it then.
func (c *counts) fitsLocked(k key, s source, weight int) bool {
	shown := c.shown[k] + weight
	switch k.by {
	case "":
		if shown > perMessage {
			return false
		}
	case someStranger:
		caller := key{k.message, s.address}
		if _, known := c.callers[caller]; !known && len(c.callers) >= maxCounted {
			return false
		}
		c.callers[caller] += weight
		if c.callers[caller] > perStranger || shown > perStrangers {
			return false
		}
	default:
		all := c.shown[key{by: s.user}] + weight
		if (shown > perMessage || all > perUser) && (shown > always || all > perUserWithFirst) {
			return false
		}
		c.shown[key{by: s.user}] = all
	}
	c.shown[k] = shown
	return true
}

// flush ends the window, and says what was left out. After the last one nothing is left out.
func (c *counts) flush(last bool) {
	c.mu.Lock()
	omitted, begun := c.omitted, c.begun
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer, c.omitted, c.ended = nil, nil, c.ended || last
	c.mu.Unlock()
	for k, o := range omitted {
		r := slog.NewRecord(time.Now(), o.level, Omitted, 0)
		r.AddAttrs(slog.String("omitted", k.message), slog.Int("count", o.count),
			slog.Duration("within", time.Since(begun).Round(time.Second)))
		if len(o.addresses) > 0 {
			r.AddAttrs(slog.Int("addresses", len(o.addresses)))
		}
		_ = o.handler.Handle(context.Background(), r)
	}
}
