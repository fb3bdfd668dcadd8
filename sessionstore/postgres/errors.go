package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// errChanged is returned by a transaction that found a row changed before it could lock it.
var errChanged = errors.New("another program changes the session at the same time")

// code returns the SQLSTATE in err's tree, or "".
func code(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

// mayRepeat reports whether a call that failed had no effect, and may succeed if it is repeated.
func mayRepeat(err error) bool {
	switch code(err) {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	}
	return errors.Is(err, errChanged) || pgconn.SafeToRetry(err)
}

// newerError reports a schema that needs a newer program.
type newerError struct{ oldest int }

func (e *newerError) Error() string {
	return fmt.Sprintf("it is from a newer version of the program: "+
		"it needs schema version %d, this program has %d", e.oldest, version)
}

// explain turns err into one of the errors of [sessionstore.Store].
func (d *database) explain(ctx context.Context, err error) error {
	switch {
	case err == nil || describesCall(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &sessionstore.UnavailableError{Medium: d.medium(), Hint: hintFor(err), Err: err}
}

// describesCall reports whether err is about the call, not about the database.
func describesCall(err error) bool {
	for _, target := range []error{
		sessionstore.ErrClosed, sessionstore.ErrExists,
		sessionstore.ErrReplaced, sessionstore.ErrDraft,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return errors.As(err, new(*sessionstore.NotFoundError)) ||
		errors.As(err, new(*sessionstore.FencedError))
}

// hintFor tells a person what to do.
func hintFor(err error) string {
	state := code(err)
	switch {
	case errors.As(err, new(*newerError)):
		return "update acp-agent, or choose another database"
	case strings.HasPrefix(state, "28"):
		return "check the user and the password of the store"
	case state == "3D000":
		return "create the database"
	case state == "42501":
		return "allow the user to create a schema in the database"
	case strings.HasPrefix(state, "53"):
		return "the database has no room or no connections left; its administrator can help"
	case state == "55P03":
		return "another program keeps a lock in the database; end programs that hang, then try again"
	case state == "":
		return "check that the database runs and can be reached, then try again"
	}
	return "check the log of the database, then try again"
}
