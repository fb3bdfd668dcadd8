// Package core is the session store: it has every rule and every statement once. A [Database] is
// where the rows are. The packages of databases open one, and explain its errors.
package core

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Options configure a Store.
type Options struct {
	// Retention is how long sessions that were never prompted are kept; 0 means forever.
	Retention time.Duration
	// PurgeDelay is the time between a delete and the purging of its data; 0 means a second.
	// Deletes in that time are purged together.
	PurgeDelay time.Duration
	// Logger receives warnings; nil discards them.
	Logger *slog.Logger
}

// Store is a [sessionstore.Shared] in a [Database].
type Store struct {
	*shared
	owner string
	quota *quota
}

// shared has the state that the stores of all owners share.
type shared struct {
	db      Database
	options Options
	log     *slog.Logger

	// using is locked for reading by every call, and for writing by Close.
	using   sync.RWMutex
	life    context.Context
	end     context.CancelFunc
	opening *queue // has one place
	opened  atomic.Bool
	damaged sync.Map // the ids of sessions whose damage was logged
	quotas  sync.Map // of owners, by name

	// Each of these is acquired before those that follow. Lists take long, so there are fewer
	// places for them: listing is for lists, searches and counts.
	listing, reading, writing *queue

	// purgeDue has a token if there may be something to purge. background is the goroutine that
	// purges.
	purgeDue   chan struct{}
	background sync.WaitGroup
}

// maxListing is the number of lists, searches and counts of an owner that run at once.
const maxListing = 2

// New returns the store in a database. The first call that needs it opens it.
func New(db Database, o Options) *Store {
	o.PurgeDelay = cmp.Or(o.PurgeDelay, time.Second)
	s := &shared{db: db, options: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		opening: newQueue(1, 1), purgeDue: make(chan struct{}, 1)}
	t := db.Traits()
	s.listing = newQueue(t.Readers, maxListing)
	s.reading = newQueue(t.Readers, t.Readers)
	s.writing = s.reading
	if t.Writers > 0 {
		s.writing = newQueue(t.Writers, t.Writers)
	}
	s.life, s.end = context.WithCancel(context.Background())
	return (&Store{shared: s}).of("")
}

// For implements [sessionstore.Shared].
func (s *Store) For(owner string) sessionstore.Store { return view{s.of(owner)} }

func (s *Store) of(owner string) *Store {
	q, _ := s.quotas.LoadOrStore(owner, new(quota))
	return &Store{s.shared, owner, q.(*quota)}
}

// view is the store of an owner. Closing it does not close the database.
type view struct{ *Store }

// Close implements [sessionstore.Store].
func (view) Close() error { return nil }

// Close implements [sessionstore.Store]. If the store was used and Options.Retention is set, it
// first prunes the sessions that were never prompted, for about a second. Then it purges what
// deleted sessions left, for a limited time; the next program does the rest.
func (s *Store) Close() error {
	s.applyRetention()
	s.end()
	s.using.Lock()
	defer s.using.Unlock()
	s.background.Wait()
	if !s.opened.Swap(false) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.db.Traits().CloseTimeout)
	defer cancel()
	_ = s.purge(ctx)
	if err := s.db.Close(); err != nil {
		return s.db.Explain(err)
	}
	return nil
}

// Ping implements [sessionstore.Shared].
func (s *Store) Ping(ctx context.Context) error {
	_, err := transact(ctx, s, Probe, func(tx *transaction) bool {
		return tx.row([]any{new(int64)}, "SELECT count(*) FROM agents WHERE owner = $1")
	})
	if err != nil {
		return err
	}
	err = s.change(ctx, func(tx *transaction) {
		tx.exec("INSERT INTO agents (owner, kind, profile) VALUES ($1, 'ping', '')")
		tx.exec("DELETE FROM agents WHERE owner = $1 AND kind = 'ping'")
	})
	if ctx.Err() != nil {
		return nil // others are writing
	}
	return err
}

// transact returns what do returns in a transaction. It may run do several times.
func transact[T any](
	ctx context.Context, s *Store, a Access, do func(*transaction) T,
) (value T, err error) {
	err = s.Use(ctx, func() error {
		return s.run(ctx, a, func(tx *transaction) { value = do(tx) })
	})
	if err != nil {
		value = *new(T) // of a transaction that was not committed
	}
	return value, err
}

// change runs do in a transaction that changes something. It may run do several times.
func (s *Store) change(ctx context.Context, do func(*transaction)) error {
	return s.Use(ctx, func() error { return s.run(ctx, Write, do) })
}

// run runs a transaction in the open database when it is the owner's turn.
func (s *Store) run(ctx context.Context, a Access, do func(*transaction)) error {
	asked := time.Now()
	for _, q := range s.queues(a) {
		if err := q.acquire(ctx, s.owner); err != nil {
			return err
		}
		defer q.release(s.owner)
	}
	return s.db.Transact(ctx, s.owner, a, func(tx Tx) error {
		return failed(func() { do(&transaction{tx, s.shared, s.owner, s.quota, asked, false}) })
	})
}

// queues returns the queues in which a transaction needs a place, in the order in which it gets
// them.
func (s *shared) queues(a Access) []*queue {
	switch a {
	case Probe:
		return nil
	case Read:
		return []*queue{s.reading}
	case List:
		return []*queue{s.listing, s.reading}
	}
	return []*queue{s.writing}
}

// Use calls do with the open database, which it opens if necessary. It repeats what fails because
// of others.
func (s *Store) Use(ctx context.Context, do func() error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	return s.repeat(ctx, func() error {
		if s.life.Err() != nil {
			return sessionstore.ErrClosed
		}
		if err := s.open(ctx); err != nil {
			return err
		}
		return do()
	})
}

// repeat calls do until it does not fail because of others.
func (s *Store) repeat(ctx context.Context, do func() error) error {
	begun := time.Now()
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := do()
		if errors.Is(err, errUnmeasured) {
			if err = s.measure(ctx); err == nil {
				continue
			}
		}
		if err == nil || describesCall(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, again := s.db.Repeat(err, attempt, time.Since(begun))
		if !again {
			return s.db.Explain(err)
		}
		_ = pause.For(ctx, wait)
	}
}

func (s *Store) open(ctx context.Context) error {
	if s.opened.Load() {
		return nil
	}
	if err := s.opening.acquire(ctx, ""); err != nil {
		return err
	}
	defer s.opening.release("")
	if s.life.Err() != nil {
		return sessionstore.ErrClosed
	}
	if s.opened.Load() {
		return nil
	}
	if err := s.db.Open(ctx); err != nil {
		return err
	}
	s.opened.Store(true)
	s.purgeSoon() // a program may have been killed before it could
	s.background.Go(s.purgeInBackground)
	return nil
}

// Owners implements [sessionstore.Shared].
func (s *Store) Owners(ctx context.Context) (owners []string, err error) {
	owners, err = transact(ctx, s.of(Everyone), Read, func(tx *transaction) []string {
		return column[string](tx.query("SELECT DISTINCT owner FROM agents"))
	})
	slices.Sort(owners)
	return owners, err
}

// The purge of what was deleted: the strand of a deleted session and a replaced history become
// expired drafts. Their rows are deleted afterwards, a few at a time, because there may be many.

const (
	// purgeRetry is the time between two attempts to purge if the first fails.
	purgeRetry = time.Minute
	// purgeTime is about how long a transaction purges, before its commit.
	purgeTime = time.Millisecond
	// purgePause is the shortest pause between two transactions that purge.
	purgePause = 2 * time.Millisecond
)

// purgeSoon wakes the goroutine that purges.
func (s *Store) purgeSoon() {
	select {
	case s.purgeDue <- struct{}{}:
	default:
	}
}

func (s *Store) purgeInBackground() {
	for {
		select {
		case <-s.purgeDue:
		case <-s.life.Done():
			return
		}
		if pause.For(s.life, s.options.PurgeDelay) != nil {
			return
		}
		if err := s.purge(s.life); err != nil && s.life.Err() == nil {
			s.log.Warn("cannot erase the data of deleted sessions; it is tried again", "error", err)
			_ = pause.For(s.life, purgeRetry)
			s.purgeSoon()
		}
	}
}

// purge deletes the rows of expired drafts, if there are any.
func (s *Store) purge(ctx context.Context) error {
	var owners []string
	err := s.of(Everyone).run(ctx, Probe, func(tx *transaction) {
		owners = column[string](tx.query("SELECT DISTINCT owner FROM drafts WHERE started < $1",
			tx.draftsExpire()))
	})
	if err != nil || len(owners) == 0 {
		return err
	}
	for _, owner := range owners {
		if err := s.of(owner).purgeOwner(ctx); err != nil {
			return err
		}
	}
	return s.db.Purged(ctx, true)
}

// purgeOwner deletes the rows of the owner's expired drafts, in transactions of about purgeTime, and
// pauses after each of them for as long as that took.
func (s *Store) purgeOwner(ctx context.Context) error {
	for done := false; !done; {
		start := time.Now()
		err := s.repeat(ctx, func() error {
			return s.run(ctx, Background, func(tx *transaction) {
				done = false
				for begun := time.Now(); !done && time.Since(begun) < purgeTime; {
					done = tx.purgeSome()
				}
			})
		})
		if err != nil {
			return err
		}
		if err := s.db.Purged(ctx, false); err != nil {
			return err
		}
		if err := pause.For(ctx, max(purgePause, time.Since(start))); err != nil {
			return err
		}
	}
	return nil
}

// describesCall reports whether err is about a call rather than about the database.
func describesCall(err error) bool {
	return errors.Is(err, sessionstore.ErrClosed) || errors.Is(err, sessionstore.ErrExists) ||
		errors.Is(err, sessionstore.ErrDraft) || errors.As(err, new(*sessionstore.NotFoundError)) ||
		errors.As(err, new(*sessionstore.FencedError)) ||
		errors.As(err, new(*sessionstore.QuotaError))
}
