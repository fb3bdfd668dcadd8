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
	// delayBurst is how many records a user may cause with [Delay] before they wait, and delayRate how
	// many a second from then on.
	delayBurst, delayRate = 600, 100
	// maxCounted is how many messages and addresses are counted apart. The others are counted
	// together.
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
// are lines that a child has written. Records below the level Info are not limited, and with [Delay]
// no record of a user is left out.
func New(next *slog.Logger, excess Excess) (limited *slog.Logger, end func()) {
	c := &counts{strangers: next.Handler(), excess: excess, rates: map[string]*rate.Limiter{}}
	c.reset()
	return slog.New(&handler{next: next.Handler(), counts: c}), c.end
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

// counts counts the records of a window.
type counts struct {
	strangers slog.Handler // for the records about addresses without a user
	excess    Excess

	mu       sync.Mutex
	rates    map[string]*rate.Limiter // with Delay, by user
	ended    bool
	timer    *time.Timer // ends the window; nil until something is left out
	started  time.Time
	messages map[key]*count
	users    map[string]int // records, by user
	callers  map[key]int    // records of strangers, by message and address
}

// key is a message with who has caused it: a user, or an address.
type key struct {
	message  string
	user     string
	stranger string
}

// someStranger stands for all addresses together.
const someStranger = "*"

// count counts the records with a message.
type count struct {
	handler       slog.Handler
	level         slog.Level
	shown         int
	omitted       int
	omittedOwners map[string]bool // addresses, of strangers
}

func (c *counts) reset() {
	c.timer, c.started = nil, time.Now()
	c.messages, c.users, c.callers = map[key]*count{}, map[string]int{}, map[key]int{}
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
	if s.child && r.Level == slog.LevelInfo {
		r.Message = childOutput
	}
	c.mu.Lock()
	var over []said
	if time.Since(c.started) >= window {
		over = c.takeLocked()
	}
	admitted := c.admitLocked(h, r, s, weight)
	c.mu.Unlock()
	say(over)
	return admitted
}

func (c *counts) admitLocked(h *handler, r slog.Record, s source, weight int) bool {
	stranger := s.user == "" && s.address != ""
	n := c.countLocked(h, r, s, stranger)
	fits := false
	switch {
	case stranger:
		caller := key{message: r.Message, stranger: s.address}
		if _, known := c.callers[caller]; known || len(c.callers) < maxCounted {
			c.callers[caller] += weight
			fits = c.callers[caller] <= perStranger && n.shown+weight <= perStrangers
		}
	case s.user == "":
		fits = n.shown+weight <= perMessage
	default:
		shown, all := n.shown+weight, c.users[s.user]+weight
		fits = shown <= perMessage && all <= perUser || shown <= always && all <= perUserWithFirst
		if fits {
			c.users[s.user] += weight
		}
	}
	if fits {
		n.shown += weight
		return true
	}
	n.omitted++
	n.level = max(n.level, r.Level)
	if stranger && len(n.omittedOwners) < maxCounted {
		n.omittedOwners[s.address] = true
	}
	if c.timer == nil && !c.ended {
		c.timer = time.AfterFunc(window-time.Since(c.started), c.flush)
	}
	return false
}

// countLocked returns the count for a record.
func (c *counts) countLocked(h *handler, r slog.Record, s source, stranger bool) *count {
	k := key{message: r.Message, user: s.user}
	if stranger {
		k.stranger = someStranger
	}
	if c.messages[k] == nil && len(c.messages) >= maxCounted {
		k.message = "" // stands for all further ones
	}
	n := c.messages[k]
	if n == nil {
		n = &count{handler: h.next, omittedOwners: map[string]bool{}}
		if stranger {
			n.handler = c.strangers
		}
		c.messages[k] = n
	}
	return n
}

// said is a record that says how many others were left out.
type said struct {
	handler slog.Handler
	record  slog.Record
}

// takeLocked ends the window, and returns what to say about it.
func (c *counts) takeLocked() []said {
	if c.timer != nil {
		c.timer.Stop()
	}
	var all []said
	for k, n := range c.messages {
		if n.omitted == 0 {
			continue
		}
		r := slog.NewRecord(time.Now(), n.level, Omitted, 0)
		r.AddAttrs(slog.String("omitted", k.message), slog.Int("count", n.omitted),
			slog.Duration("within", time.Since(c.started).Round(time.Second)))
		if len(n.omittedOwners) > 0 {
			r.AddAttrs(slog.Int("addresses", len(n.omittedOwners)))
		}
		all = append(all, said{n.handler, r})
	}
	c.reset()
	return all
}

func say(all []said) {
	for _, s := range all {
		_ = s.handler.Handle(context.Background(), s.record)
	}
}

// flush ends the window.
func (c *counts) flush() {
	c.mu.Lock()
	all := c.takeLocked()
	c.mu.Unlock()
	say(all)
}

// end says what was left out. Nothing is said later.
func (c *counts) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.flush()
}
