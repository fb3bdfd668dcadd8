package core

import (
	"context"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Database is what differs between databases. Statements are the same for all: they use what SQLite
// and PostgreSQL both know, and their first argument, $1, is the owner.
type Database interface {
	// Open opens the database, and creates the tables if there are none. After an error it can be
	// called again.
	Open(ctx context.Context) error
	// Close closes the database, which was opened, after the last transaction.
	Close() error
	// Traits are the same at every call.
	Traits() Traits

	// Transact runs do in a transaction of an owner and commits it. now is the time in milliseconds
	// since 1970, UTC. If do fails, nothing has changed.
	Transact(
		ctx context.Context, owner string, a Access, do func(tx Tx, now int64) error,
	) error
	// Repeat reports whether a transaction that failed had no effect and may succeed if it is
	// repeated after a pause. It was tried a number of times since some time.
	Repeat(err error, attempts int, since time.Duration) (pause time.Duration, again bool)
	// Explain returns err as an error of [sessionstore.Store].
	Explain(err error) error

	// AddPassages indexes passages of a strand, which were said at a time.
	AddPassages(
		tx Tx, owner string, strand, said int64, passages []sessionstore.Passage,
	) error
	// FindPassages returns the keys of the last passages of an owner's sessions with all terms, up
	// to limit, and up to [sessionstore.MaxFoundInSession] of a session.
	FindPassages(
		tx Tx, owner string, terms []sessionstore.Term, limit int,
	) (keys []int64, err error)

	// Purged is called outside of transactions when some deleted data was purged. done says that it
	// was the last.
	Purged(ctx context.Context, done bool) error
}

// Everyone is the owner of a transaction that reads the names of all owners.
const Everyone = "\x00"

// Access is what a transaction does.
type Access int

const (
	// Read sees one snapshot and changes nothing.
	Read Access = iota
	// Write sees what others have committed before each statement.
	Write
	// Background is a Write that nobody waits for.
	Background
	// Probe is a Read that finds out whether the database can be used. It waits for no others.
	Probe
)

// Traits are the constants of a database.
type Traits struct {
	// Readers is the number of transactions that can read at the same time, besides a Probe, and
	// Writers of those that can write. If Writers is 0, they take the places of readers.
	Readers, Writers int
	// Next is a query for a number that it never returns again.
	Next string
	// ForWrite and ForShare are what ends a query in order to lock rows.
	ForWrite, ForShare string
	// IndexedBy is what stands before the name of the index that a list uses, "" if the database
	// chooses one itself.
	IndexedBy string
	// CloseTimeout limits how long purging delays Close.
	CloseTimeout time.Duration
}

// Tx is a transaction.
type Tx interface {
	// Exec runs a statement, and returns the number of changed rows.
	Exec(text string, args ...any) (changed int64, err error)
	// ExecEach runs a statement with each list of arguments.
	ExecEach(text string, each [][]any) error
	// Query runs a query. The caller closes the rows.
	Query(text string, args ...any) (Rows, error)
}

// Rows are the rows of a query.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// errNoRow is returned by transaction.row.
var errNoRow = errors.New("there is no such row")

// transaction is a transaction of an owner.
type transaction struct {
	Tx
	*Store
	now int64 // the time of its beginning
}

// args returns the arguments of a statement.
func (tx *transaction) args(args []any) []any { return append([]any{tx.owner}, args...) }

// exec runs a statement. The arguments are $2 and later.
func (tx *transaction) exec(text string, args ...any) error {
	_, err := tx.Exec(text, tx.args(args)...)
	return err
}

// execAll runs statements with the same arguments, until one fails.
func (tx *transaction) execAll(args []any, texts ...string) error {
	for _, text := range texts {
		if err := tx.exec(text, args...); err != nil {
			return err
		}
	}
	return nil
}

// row reads the one row of a query. It returns errNoRow if there is none.
func (tx *transaction) row(dest []any, text string, args ...any) error {
	found := false
	err := tx.each(dest, func() error {
		found = true
		return nil
	}, text, args...)
	if err == nil && !found {
		err = errNoRow
	}
	return err
}

// each reads the rows of a query into dest, and calls do after each.
func (tx *transaction) each(dest []any, do func() error, text string, args ...any) error {
	return tx.rows(func(rows Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		return do()
	}, text, args...)
}

// rows calls do with each row of a query.
func (tx *transaction) rows(do func(Rows) error, text string, args ...any) error {
	rows, err := tx.Query(text, tx.args(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// next returns a number that no session, lease or strand has had.
func (tx *transaction) next() (n int64, err error) {
	rows, err := tx.Query(tx.db.Traits().Next)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&n)
	}
	return n, errors.Join(err, rows.Err())
}
