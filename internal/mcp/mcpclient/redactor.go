package mcpclient

import (
	"context"
	"errors"
	"log/slog"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// maxErrorText is the most bytes of an error's text, which may come from the server.
const maxErrorText = 2 << 10

// redactor replaces a server's secrets in text.
type redactor struct{ *secret.Scrubber }

// err returns err with secrets replaced in its text, which is truncated. It still unwraps to err.
// For an error of the HTTP transport, it leaves out the request that the MCP SDK was sending.
func (r redactor) err(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*transportError](err); ok {
		err = e
	}
	if s := text.Truncate(r.Text(describeError(err)), maxErrorText); s != err.Error() {
		return &redactedError{s, err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// logger returns a logger that replaces secrets in messages and attributes.
func (r redactor) logger(l *slog.Logger) *slog.Logger {
	return slog.New(redactingHandler{l.Handler(), r})
}

type redactingHandler struct {
	slog.Handler
	redactor redactor
}

// Handle implements [slog.Handler].
func (h redactingHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.redactor.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.redact(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.redact(a)
	}
	return redactingHandler{h.Handler.WithAttrs(clean), h.redactor}
}

// WithGroup implements [slog.Handler].
func (h redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{h.Handler.WithGroup(name), h.redactor}
}

func (h redactingHandler) redact(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.redactor.Text(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.Any(a.Key, h.redactor.err(err))
		}
	}
	return a
}
