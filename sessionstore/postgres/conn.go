package postgres

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// conn is a connection in a [sql.DB], which is nothing but a pool of them: transactions travel in
// fewer round trips than that package knows.
type conn struct {
	driver.Conn // nil: a pool begins and prepares nothing
	server      *pgconn.PgConn
	names       map[string]string // those of its prepared statements, by their texts
	failed      bool              // some of them may not be prepared
}

// maxPrepared limits the statements of a connection: lists of placeholders can have any length.
const maxPrepared = 512

// connector makes connections.
type connector struct {
	driver.Connector // nil: a pool needs no driver
	config           *pgconn.Config
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	server, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}
	return &conn{server: server, names: make(map[string]string)}, nil
}

// IsValid implements [driver.Validator]. The pool closes a connection that is not valid. That one was
// lost while it was idle shows when it is used: a transaction that has not sent its commit is
// repeated.
func (c *conn) IsValid() bool {
	const idle = 'I' // in no transaction
	return !c.server.IsClosed() && !c.server.IsBusy() && c.server.TxStatus() == idle &&
		!c.failed && len(c.names) < maxPrepared
}

// Close implements [driver.Conn].
func (c *conn) Close() error { return c.server.Close(context.Background()) }

// row reads the one row of a query outside of transactions into dest.
func (c *conn) row(ctx context.Context, text string, dest ...any) error {
	result := c.server.ExecParams(ctx, text, nil, nil, nil, binaryFormat).Read()
	for _, row := range result.Rows {
		if err := decode(row, dest); err != nil {
			return err
		}
	}
	return result.Err
}

// statement is a statement of a transaction.
type statement struct {
	text string
	args []any
}

// send sends statements, and prepares each text once.
func (c *conn) send(p *pgconn.Pipeline, all []statement) error {
	for _, s := range all {
		name, ok := c.names[s.text]
		if !ok {
			name = strconv.Itoa(len(c.names))
			c.names[s.text] = name
			p.SendPrepare(name, s.text, nil)
		}
		values, formats := encode(s.args)
		p.SendQueryPrepared(name, values, formats, binaryFormat)
	}
	return p.Sync()
}

// rows are [core.Rows], the results of the last statement that was sent.
type rows struct {
	sent   *pgconn.Pipeline
	result *pgconn.ResultReader
}

// Next implements [core.Rows].
func (r *rows) Next() bool { return r.result.NextRow() }

// Scan implements [core.Rows].
func (r *rows) Scan(dest ...any) error { return decode(r.result.Values(), dest) }

// Err implements [core.Rows].
func (r *rows) Err() error {
	_, err := r.result.Close()
	return err
}

// Close implements [core.Rows].
func (r *rows) Close() error { return r.sent.Close() }

// binaryFormat is that of the values of all columns, as the database has them in memory.
var binaryFormat = []int16{1}

// encode returns arguments as the database reads them, and their formats: bytes are binary, and nil
// is NULL. Numbers, booleans and strings, of types without a method String, are text.
func encode(args []any) (values [][]byte, formats []int16) {
	values, formats = make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case nil:
		case []byte:
			values[i], formats[i] = arg, binaryFormat[0]
		default:
			values[i] = fmt.Append([]byte{}, arg)
		}
	}
	return values, formats
}

// decode reads a row of binary values into dest. Numbers are bigint or double precision.
func decode(row [][]byte, dest []any) error {
	for i, value := range row {
		switch to := dest[i].(type) {
		case *[]byte:
			*to = bytes.Clone(value) // nil for NULL
		case *string:
			*to = string(value)
		default:
			if n, err := binary.Decode(value, binary.BigEndian, to); err != nil || n != len(value) {
				return fmt.Errorf("a value of %d bytes is no %T", len(value), to)
			}
		}
	}
	return nil
}
