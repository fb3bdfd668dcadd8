package backend

import (
	"context"
	"iter"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// Foreign is implemented by a runtime that knows sessions of its own, which the
// adapter imports into the store so that a list has one source.
type Foreign interface {
	// Key is what the runtime itself calls the session that saved state, "" if the state
	// names none. Two states with the same key are the same session, so that one that
	// was opened here is not imported as another. It is stable from run to run.
	Key(state []byte) string
	// Sessions yields the sessions that the runtime knows, newest first. cwd restricts
	// them to one working directory; nil asks for all. An error ends the iteration.
	Sessions(ctx context.Context, cwd *workspace.Dir) iter.Seq2[ForeignSession, error]
	// Delete removes the session that state names, for good. One that is gone is no error.
	Delete(ctx context.Context, state []byte) error
}

// ForeignSession is a session that a runtime knows and the store may not.
type ForeignSession struct {
	// State is what Activation.State carries when the session is opened. Its Key is not empty.
	State []byte
	// Roots is its root set, as far as the runtime knows.
	Roots workspace.Roots
	// Title is one line, "" if there is none.
	Title string
	// Updated is its last activity, zero if not known.
	Updated time.Time
}
