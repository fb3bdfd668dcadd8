package core

import (
	"context"
	_ "embed" // the schema
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Database hides how databases differ. Statements are the same for all: they use what SQLite
// and PostgreSQL both know, and their first argument, $1, is the owner.
type Database interface {
	// Open opens the database, and creates the tables if they are missing. After an error it can be
	// called again.
	Open(ctx context.Context) error
	// Close closes the database, which was opened, after the last transaction.
	Close() error
	// Traits are the same at every call.
	Traits() Traits

	// Transact runs do in a transaction of an owner, and commits it unless do fails.
	Transact(ctx context.Context, owner string, a Access, do func(Tx) error) error
	// Repeat reports whether a transaction that failed had no effect and may succeed if it is
	// repeated after a pause. attempts and since say how often and for how long it was tried.
	Repeat(err error, attempts int, since time.Duration) (pause time.Duration, again bool)
	// Explain returns err as an error of [sessionstore.Store].
	Explain(err error) error

	// Indexed returns the text of an owner's passage as Traits.AddPassage takes it.
	Indexed(owner, text string) []any
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

// Access says what a transaction does.
type Access int

const (
	// Read sees one snapshot and changes nothing.
	Read Access = iota
	// List is a Read that takes long.
	List
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
	// AddPassage inserts a passage: an owner, strand, seq, time, role, and what Indexed returns.
	AddPassage string
	// ForWrite ends a query in order to lock rows.
	ForWrite string
	// IndexedBy stands before the name of the index that a list uses, "" if the database
	// chooses one itself.
	IndexedBy string
	// CloseTimeout limits how long purging delays Close.
	CloseTimeout time.Duration
}

// Tx is a transaction.
type Tx interface {
	// Now returns the time of its beginning in milliseconds since 1970, UTC.
	Now() (int64, error)
	// Exec runs a statement with each list of arguments. If it fails, so may the next statement, or
	// the commit, instead.
	Exec(text string, each ...[]any) error
	// Query runs a query. The caller closes the rows.
	Query(text string, args ...any) (Rows, error)
}

// Rows are the rows of a query.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// transaction is a transaction of an owner. Nothing follows in it once something has failed, so its
// methods return no errors: they panic with a failure, of which [Store.run] makes an error again.
type transaction struct {
	tx Tx
	*shared
	owner  string
	quota  *quota
	asked  time.Time // when it began to wait for its turn
	begins bool      // it stores what is refused if there is no room for it
}

// failure is the error that has ended a transaction.
type failure struct{ error }

// must ends the transaction in which it is called if err is not nil.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// got returns a value, and ends the transaction in which it is called if err is not nil.
func got[T any](value T, err error) T {
	must(err)
	return value
}

// failed returns the error with which do, a transaction, has ended.
func failed(do func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	do()
	return nil
}

// now returns the time at which the transaction began.
func (tx *transaction) now() int64 { return got(tx.tx.Now()) }

// The arguments of these methods are $2 and later in the statement: $1 is the owner.

// exec runs a statement.
func (tx *transaction) exec(text string, args ...any) { tx.execEach(text, [][]any{args}) }

// execEach runs a statement with each list of arguments.
func (tx *transaction) execEach(text string, each [][]any) {
	owned := make([][]any, len(each))
	for i, args := range each {
		owned[i] = append([]any{tx.owner}, args...)
	}
	must(tx.tx.Exec(text, owned...))
}

// row reads the one row of a query into dest, and reports whether there is one.
func (tx *transaction) row(dest []any, text string, args ...any) (found bool) {
	for rows := range tx.rows(text, args...) {
		must(rows.Scan(dest...))
		found = true
	}
	return found
}

// rows yields the rows of a query.
func (tx *transaction) rows(text string, args ...any) iter.Seq[Rows] {
	return tx.query(text, append([]any{tx.owner}, args...)...)
}

// query yields the rows of a query without an owner: args are all arguments.
func (tx *transaction) query(text string, args ...any) iter.Seq[Rows] {
	return func(yield func(Rows) bool) {
		rows := got(tx.tx.Query(text, args...))
		defer rows.Close()
		for rows.Next() && yield(rows) {
		}
		must(rows.Err())
	}
}

// column returns the values in rows of one column.
func column[T any](rows iter.Seq[Rows]) (all []T) {
	for row := range rows {
		var one T
		must(row.Scan(&one))
		all = append(all, one)
	}
	return all
}

// next returns a number that no session, lease or strand has had.
func (tx *transaction) next() (n int64) {
	for rows := range tx.query(tx.db.Traits().Next) {
		must(rows.Scan(&n))
	}
	return n
}

// placeholders returns those of some values, the first of which is $first.
func placeholders[T any](values []T, first int) (list string, args []any) {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = fmt.Sprintf("$%d", first+i)
		args = append(args, value)
	}
	return strings.Join(names, ", "), args
}

// Version is the version of the tables. Nothing was released yet, so there is no way from one
// version to another.
const Version = 22

var (
	// ErrVersion reports tables of another version.
	ErrVersion = errors.New("it is from another version of the program")
	// ErrDamage reports a row that this program cannot have written.
	ErrDamage = errors.New("it contains an invalid row")
	// ErrChanged is returned by a transaction that found a row changed before it could lock it.
	ErrChanged = errors.New("another program changes the session at the same time")
)

// CheckVersion returns an ErrVersion unless this program can use tables of a version.
func CheckVersion(version int) error {
	if version != Version {
		return fmt.Errorf("%w: it has schema version %d, and this one needs %d",
			ErrVersion, version, Version)
	}
	return nil
}

// damaged returns the ErrDamage of a row with which something is wrong.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamage, err) }

var errMissingPart = damaged(errors.New("a part of the history is missing"))

//go:embed schema.sql
var schema string

// Schema returns the statements that create the tables, with the words of a database.
func Schema(key, text, bytes string) string {
	return strings.NewReplacer("{key}", key, "{text}", text, "{bytes}", bytes,
		"{version}", strconv.Itoa(Version)).Replace(schema)
}
