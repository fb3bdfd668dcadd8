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
	// perMessage is how many records with the same message a user, or the server itself, may cause
	// in a window. Each message has its own limit, so that none hides the others.
	perMessage = 200
	// perStranger is how many records with the same message one address without a user may cause,
	// and perStrangers how many all of them may.
	perStranger, perStrangers = 5, 60
	// unit is the size of the attributes from which on a record counts as several.
	unit = 512
	// delayBurst is how many records a user may cause with [Delay] before they wait, and delayRate
	// how many a second from then on.
	delayBurst, delayRate = 600, 100
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
	slog.Handler
	source source
	counts *counts
}

// source says who has caused a record: a user, the address of somebody unknown, or, if both are
// "", the server.
type source struct {
	user, address string
	child         bool // one of the user's child processes
}

// anyStranger stands for all addresses together.
const anyStranger = "*"

// childOutput stands for the lines that child processes write, which are messages of their own.
const childOutput = "lines of child processes"

// New returns a logger that passes records on to next within the limits of their source, and a
// function that ends it. The source of a record is the user in its attribute "user", or else the
// address in "from", or the last address in "forwardedFor". Records of the level Info with "child"
// are lines that a child has written. Records below the level Info are not limited, and with
// [Delay] no record of a user is left out.
func New(next *slog.Logger, excess Excess) (limited *slog.Logger, end func()) {
	c := &counts{strangers: next.Handler(), excess: excess, rates: map[string]*rate.Limiter{}}
	return slog.New(&handler{Handler: next.Handler(), counts: c}), func() { c.flush(true) }
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	s := h.source
	for _, a := range attrs {
		s = s.with(a)
	}
	return &handler{h.Handler.WithAttrs(attrs), s, h.counts}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.source, h.counts}
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && !h.counts.admit(ctx, h, r) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
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
		last := strings.TrimSpace(all[strings.LastIndex(all, ",")+1:])
		if at, err := netip.ParseAddr(last); err == nil {
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

// counts counts the records of a window.
type counts struct {
	strangers slog.Handler // for the records about addresses without a user
	excess    Excess

	mu    sync.Mutex
	rates map[string]*rate.Limiter // with Delay, by user
	ended bool
	now   *tally // nil until the next record
}

// tally has the records of a window, which begins with a record.
type tally struct {
	begun   time.Time
	timer   *time.Timer // ends the window
	shown   map[key]int // weights of records
	omitted map[key]*omission
}

// key is a message with who has caused it: a user, an address, anyStranger, or "" for the server.
type key struct{ message, by string }

// omission says how many records were left out.
type omission struct {
	handler slog.Handler
	level   slog.Level
	count   int
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
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return true
	case c.now == nil:
		c.now = &tally{time.Now(), time.AfterFunc(window, func() { c.flush(false) }),
			map[key]int{}, map[key]*omission{}}
	}
	k, limit, next := key{r.Message, s.user}, perMessage, h.Handler
	if s.child && r.Level == slog.LevelInfo {
		k.message = childOutput
	}
	own, ownLimit := k, limit
	if s.user == "" && s.address != "" {
		own, ownLimit = key{r.Message, "from " + s.address}, perStranger
		k.by, limit, next = anyStranger, perStrangers, c.strangers
	}
	shown, omitted := c.now.shown, c.now.omitted
	if shown[k] < limit && shown[own] < ownLimit {
		shown[k], shown[own] = shown[k]+weight, shown[own]+weight
		return true
	}
	if omitted[k] == nil {
		omitted[k] = &omission{handler: next}
	}
	o := omitted[k]
	o.count, o.level = o.count+1, max(o.level, r.Level)
	return false
}

// flush ends the window, and says what was left out. After the last one nothing is left out.
func (c *counts) flush(last bool) {
	c.mu.Lock()
	now := c.now
	c.now, c.ended = nil, c.ended || last
	c.mu.Unlock()
	if now == nil {
		return
	}
	now.timer.Stop()
	for k, o := range now.omitted {
		r := slog.NewRecord(time.Now(), o.level, Omitted, 0)
		r.AddAttrs(slog.String("omitted", k.message), slog.Int("count", o.count),
			slog.Duration("within", time.Since(now.begun).Round(time.Second)))
		_ = o.handler.Handle(context.Background(), r)
	}
}
