package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

var _ sessionstore.Store = (*Store)(nil)

// Journal is how SQLite makes commits atomic.
type Journal string

const (
	// JournalAuto is JournalWAL, or JournalRollback on a network file system.
	JournalAuto Journal = ""
	// JournalWAL is the write-ahead log. It needs memory that the processes share.
	JournalWAL Journal = "WAL"
	// JournalRollback is the rollback journal.
	JournalRollback Journal = "DELETE"
)

// DefaultPatience is how long a call waits for other processes.
const DefaultPatience = 10 * time.Second

// Options say where a Store is and how it behaves.
type Options struct {
	// Dir is the directory of the store's files. It is created, for the user alone, when it is missing.
	Dir string
	// Journal is JournalAuto unless something else is asked for.
	Journal Journal
	// Patience is how long a call waits for other processes before it fails; 0 means DefaultPatience.
	Patience time.Duration
	// Retention is how long sessions that were never prompted are kept; 0 means for good. See [Store.Close].
	Retention time.Duration
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Store is a [sessionstore.Store] in a SQLite file.
type Store struct {
	options Options
	steps   []step

	// using is held for reading by every call, and by Close.
	using   sync.RWMutex
	life    context.Context
	end     context.CancelFunc
	opening chan struct{} // holds one token: who has it may open or look at db
	db      *database
}

// New returns the store in o.Dir. It touches nothing; the first call that needs the file opens it.
func New(o Options) *Store {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{options: o, steps: steps(), opening: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	s.opening <- struct{}{}
	return s
}

// Dir is the directory of the store's files.
func (s *Store) Dir() string { return s.options.Dir }

// Close implements [sessionstore.Store]. If the store was used, and Options.Retention asks for it, it first
// prunes the sessions that were never prompted, at most once a day among all processes and for about a second.
func (s *Store) Close() error {
	s.retain()
	s.end()
	s.using.Lock()
	defer s.using.Unlock()
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return s.explain(db.close())
}

// use runs call with the open database. A failed opening is tried again by the next call.
func (s *Store) use(ctx context.Context, call func(*database) error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	return call(db)
}

func (s *Store) open(ctx context.Context) (*database, error) {
	if s.life.Err() != nil {
		return nil, sessionstore.ErrClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case <-s.opening:
		defer func() { s.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.life.Done():
		return nil, sessionstore.ErrClosed
	}
	if s.db != nil {
		return s.db, nil
	}
	err := s.patiently(ctx, func() (err error) {
		s.db, err = openDatabase(ctx, s.options, s.steps)
		return err
	})
	return s.db, err
}

// read runs do on a connection that reads. The statements of do see one snapshot.
func (s *Store) read(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return s.transact(ctx, func(db *database) (*sql.DB, *sql.TxOptions) {
		return db.reader, &sql.TxOptions{ReadOnly: true}
	}, do)
}

// write runs do in a transaction that has the write lock. It is all or nothing, and do may run
// several times.
func (s *Store) write(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return s.transact(ctx, func(db *database) (*sql.DB, *sql.TxOptions) {
		return db.writer, nil
	}, func(ctx context.Context, tx *sql.Tx) error {
		if err := permitted(ctx, tx, len(s.steps)); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

type handle func(*database) (*sql.DB, *sql.TxOptions)

func (s *Store) transact(ctx context.Context, of handle, do func(context.Context, *sql.Tx) error) error {
	return s.use(ctx, func(db *database) error {
		pool, options := of(db)
		return s.patiently(ctx, func() error {
			conn, err := pool.Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			// A statement that is interrupted costs its connection, and a transaction is short.
			ctx := context.WithoutCancel(ctx)
			tx, err := conn.BeginTx(ctx, options)
			if err != nil {
				return err
			}
			if err := do(ctx, tx); err != nil {
				return errors.Join(err, rollback(tx))
			}
			return tx.Commit()
		})
	})
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// patiently repeats try while another process is in the way, up to the store's patience.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	deadline := time.Now().Add(s.options.Patience)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		err := try()
		if !inTheWay(err) || time.Now().After(deadline) {
			return s.explain(err)
		}
		pause.Reset(retryPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.life.Done():
			return sessionstore.ErrClosed
		}
	}
}

// retryPause keeps a lock that is refused at once from being asked for without end.
const retryPause = 5 * time.Millisecond

// clock is the time as it is stored.
func (s *Store) clock() int64 { return s.options.Now().UnixMilli() }

func stored(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
