package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

var (
	errEncoding = errors.New("the encoding of the database is not UTF8")
	errPooler   = errors.New("something between this program and the database drops the settings " +
		"of connections")
	// errUncommitted is that of a connection that was lost before its transaction was committed.
	errUncommitted = errors.New("the connection was lost, and nothing was changed")
	// errUnknown is that of a connection that was lost once the commit was sent.
	errUnknown = errors.New("the connection was lost during a change, which may have been stored")
)

const (
	// tooManyConnections is the SQLSTATE of a connection that the database did not accept since it,
	// or the user, has too many.
	tooManyConnections = "53300"
	// noTable is that of a table that does not exist, or is in a schema that the user may not use,
	// and tableExists that of one which does.
	noTable, tableExists = "42P01", "42P07"
)

// code returns the SQLSTATE in err's tree, or "".
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// mayRepeat reports whether a call that failed had no effect, and may succeed if it is repeated.
func mayRepeat(err error) bool {
	switch code(err) {
	// Serialization, deadlock, read-only, a plan for other columns.
	case "40001", "40P01", "25006", "0A000", tooManyConnections:
		return true
	}
	return errors.Is(err, core.ErrChanged) || errors.Is(err, errUncommitted) ||
		pgconn.SafeToRetry(err)
}

// isLost reports whether an error ends a connection, or shows that it leads to a server that
// accepts no writes any more.
func isLost(err error) bool {
	switch state := code(err); {
	case state == "25006":
		return true
	case state != "":
		return strings.HasPrefix(state, "57P")
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(net.Error))
}

// Explain implements [core.Database].
func (d *database) Explain(err error) error {
	hint := hintFor(err)
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		// The driver has a line for each attempt, mostly twice, with and without TLS.
		reasons := strings.Split(errors.Unwrap(failed).Error(), "\n")
		slices.Sort(reasons)
		err = errors.New("cannot connect: " + strings.Join(slices.Compact(reasons), "; "))
		if unknown, ok := errors.AsType[*net.DNSError](failed); ok {
			err = fmt.Errorf("cannot look up the host %s", unknown.Name)
			hint = "check it in the address of the store, and that this machine is online"
		}
	}
	return &sessionstore.UnavailableError{Medium: d.String(), Hint: hint, Err: err}
}

// hintFor returns what a person can do about an error.
func hintFor(err error) string {
	const direct = "give the address of PostgreSQL itself: poolers such as PgBouncer are not " +
		"supported"
	state := code(err)
	switch {
	case errors.Is(err, core.ErrVersion):
		return "update acp-agent, drop this schema, or choose another schema with search_path in " +
			"the address"
	case errors.Is(err, errEncoding):
		return "create a database with ENCODING 'UTF8'"
	case errors.Is(err, errPooler), state == "08P01":
		return direct
	case state == "28P01":
		return "check the user and the password of the store"
	case strings.HasPrefix(state, "28"):
		return "check the user of the store, and what the database's pg_hba.conf allows"
	case state == "3D000":
		return "create the database"
	case state == "42704", state == "22023":
		return "check the parameters in the address of the store"
	case state == "42501", state == "3F000", state == noTable:
		return "let the user create a schema in the database, or own the one that exists"
	case state == "25006":
		return "the database can only be read; give the address of its primary, or of all " +
			"servers with target_session_attrs=read-write"
	case strings.HasPrefix(state, "53"):
		return "the database has no room or no connections left; its administrator can help"
	case state == "57014":
		return "raise or remove the statement_timeout of the database's user"
	case state == "55P03":
		return "another program keeps a lock in the database; end programs that hang, then try " +
			"again"
	case errors.Is(err, errUnknown):
		return "check that the database runs, and look whether the change is there before you " +
			"repeat it"
	case isLost(err), errors.As(err, new(*pgconn.ConnectError)):
		return "check that the database runs and can be reached, then try again"
	}
	return "check the log of the database, then try again"
}
