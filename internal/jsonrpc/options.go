package jsonrpc

import (
	"errors"
	"log/slog"
	"time"
)

// Causes with which a request's context ends.
var (
	// ErrRequestCancelled: the peer sent $/cancel_request for it.
	ErrRequestCancelled = errors.New("request cancelled by the peer")
	// ErrClosed: the connection ended.
	ErrClosed = errors.New("connection closed")
)

// ErrQueueFull is returned by the calls that do not wait when the peer has stopped reading
// and the output queue is over its limit.
var ErrQueueFull = errors.New("the peer is not reading: output queue full")

// Direction says which way a line went.
type Direction int

// The directions of a [Tap].
const (
	Received Direction = iota
	Sent
)

// Tap sees every line, without its newline, as it was read or is about to be
// written. It is called from the read loop and the write loop concurrently, must
// not keep or change line, and delays the connection while it runs.
type Tap func(d Direction, line []byte)

// Params says how strictly a connection reads the params of what it receives.
type Params int

const (
	// ParamsStrict refuses a duplicate name anywhere in params with -32602 (W2).
	ParamsStrict Params = iota
	// ParamsOpaque passes any well-formed params.
	ParamsOpaque
)

// Options configure a connection. The zero value is usable: every limit has its default.
type Options struct {
	// MaxLine is the longest line that is read, in bytes without its end.
	// Default 64 MiB (W3).
	MaxLine int
	// MaxQueue is the number of output bytes at which Call and Post fail and responses
	// wait. Notify waits at a 256th of it, so that a stream leaves room for what
	// cannot wait, and a peer that reads slowly is not far behind. One message may go over
	// it. Default 4 MiB (W11).
	MaxQueue int
	// MaxUnanswered is how many requests, and notifications with Work, are worked on at
	// once. Reading stops with the next one (W11). Default 4096.
	MaxUnanswered int
	// MaxUnansweredBytes is how long the params of the requests may be together that are worked on at once. One that is
	// too long beside others is refused: reading goes on, since what it waits for may come. Default 512 MiB (W11).
	MaxUnansweredBytes int
	// MaxGivenUp is how many calls with Answered are kept for a late response after their Work gave up. The oldest is
	// forgotten with the next one. Default 1,000 (W11).
	MaxGivenUp int
	// Grace is how long Serve waits for unanswered requests once the input has ended,
	// and for the peer to take the output. Default 2 s (W9).
	Grace time.Duration
	// Params is how strictly params are read. Default ParamsStrict.
	Params Params
	// Tap, if set, sees every line but blank ones and those over the limit.
	Tap Tap
	// Logger takes what cannot be answered. Message content is never logged. Default: discarded.
	Logger *slog.Logger
}

// withDefaults returns o with the limits that are not set.
func (o Options) withDefaults() Options {
	if o.MaxLine <= 0 {
		o.MaxLine = 64 << 20
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 4 << 20
	}
	if o.MaxUnanswered <= 0 {
		o.MaxUnanswered = 4096
	}
	if o.MaxUnansweredBytes <= 0 {
		o.MaxUnansweredBytes = 512 << 20
	}
	if o.MaxGivenUp <= 0 {
		o.MaxGivenUp = 1000
	}
	if o.Grace <= 0 {
		o.Grace = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
