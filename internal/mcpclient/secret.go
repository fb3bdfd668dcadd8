package mcpclient

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// shortestSecret is the length from which on a value is kept out of the log. Shorter ones, such as "1" or "true", are in
// every other line.
const shortestSecret = 6

// scrubber takes a server's secrets out of text.
type scrubber struct{ replacer *strings.Replacer }

func newScrubber(secrets []string) scrubber {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest first
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		pairs = append(pairs, s, "[secret]")
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

func (s scrubber) text(text string) string { return s.replacer.Replace(text) }

// maxError is the most bytes of an error's text, which may be the server's own.
const maxError = 2 << 10

// err is err with a bounded text that has no secrets. errors.As finds what it was.
func (s scrubber) err(err error) error {
	if err == nil {
		return nil
	}
	if text := cut(s.text(err.Error()), maxError); text != err.Error() {
		return &scrubbedError{text, err}
	}
	return err
}

type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }
func (e *scrubbedError) Unwrap() error { return e.err }

// logger is l without secrets in messages and attributes.
func (s scrubber) logger(l *slog.Logger) *slog.Logger {
	return slog.New(scrubbing{l.Handler(), s})
}

// scrubbing is a handler that is given no secrets.
type scrubbing struct {
	slog.Handler
	scrubber scrubber
}

// Handle implements [slog.Handler].
func (h scrubbing) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.scrubber.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h scrubbing) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return scrubbing{h.Handler.WithAttrs(clean), h.scrubber}
}

// WithGroup implements [slog.Handler].
func (h scrubbing) WithGroup(name string) slog.Handler {
	return scrubbing{h.Handler.WithGroup(name), h.scrubber}
}

func (h scrubbing) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.scrubber.text(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.Any(a.Key, h.scrubber.err(err))
		}
	}
	return a
}
