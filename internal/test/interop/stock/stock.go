// Package stock fills a session store with many sessions or long histories, which would take too
// long through the program.
//
//	s := stock.Open(stateDir)
//	err := s.Session(ctx, stock.Session{ID: "long", Cwd: dir, Messages: 100_000})
//	err = s.Close()
package stock

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// Store is a session store to fill.
type Store struct {
	store *sqlite.Store
}

// Session is a session to store. Its history is one finished turn with chunks, followed by
// messages.
type Session struct {
	ID string
	// Cwd and Directories are its roots, as real paths.
	Cwd         string
	Directories []string
	// Chunks is the number of chunks of one message. The store merges them, as it does when they
	// are streamed. [Chunk] returns their text.
	Chunks int
	// Messages is the number of messages of one chunk each, which are not merged. [Message] returns
	// their text.
	Messages int
}

// Chunk returns the text of the i-th chunk of a session.
func Chunk(i int) string { return fmt.Sprint("update ", i, "\n") }

// Message returns the text of the i-th message of a session.
func Message(i int) string { return fmt.Sprint("message ", i, "\n") }

// Open returns the store in a state directory. The caller must close it before the program starts.
func Open(stateDir string) *Store {
	return &Store{store: sqlite.New(sqlite.Options{Dir: stateDir})}
}

// Close closes the store.
func (s *Store) Close() error { return s.store.Close() }

// Session stores a session of the built-in agent.
func (s *Store) Session(ctx context.Context, n Session) error {
	roots, err := workspace.NewRoots(n.Cwd, n.Directories)
	if err != nil {
		return err
	}
	keys := sessionstore.Keys{Roots: roots}
	for _, dir := range roots.All() {
		keys.Real = append(keys.Real, dir)
	}
	lease, err := s.store.Create(ctx, sessionstore.Session{
		ID:    sessionstore.ID(n.ID),
		Agent: sessionstore.Agent{Kind: "explore"},
		Keys:  keys,
		Title: "stocked",
	})
	if err != nil || n.Chunks+n.Messages == 0 {
		return err
	}
	turn, err := s.store.BeginTurn(ctx, lease, sessionstore.Turn{})
	if err != nil {
		return err
	}
	if err := s.record(ctx, lease, n); err != nil {
		return err
	}
	return s.store.EndTurn(ctx, lease, turn)
}

// record records a history as the program does.
func (s *Store) record(ctx context.Context, lease sessionstore.Lease, n Session) error {
	r := sessionstore.NewRecorder(func(ctx context.Context, segment []sessionstore.Update) error {
		return s.store.Append(ctx, lease, segment)
	}, sessionstore.RecorderOptions{})
	for i := range n.Chunks {
		if err := r.Record(ctx, chunk("", Chunk(i))); err != nil {
			return err
		}
	}
	for i := range n.Messages {
		if err := r.Record(ctx, chunk(fmt.Sprintf(`"messageId":"m%d",`, i), Message(i))); err != nil {
			return err
		}
	}
	return r.Close(ctx)
}

func chunk(members, text string) sessionstore.Update {
	return sessionstore.StoredUpdate(fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk",%s"content":{"type":"text","text":%q}}}`, members, text))
}

// Multiply adds factor-1 copies of every session without a history, which is much faster than
// storing them one by one. Of the database it only assumes the columns that must differ: key, id,
// strand, and the time of the last activity.
func (s *Store) Multiply(ctx context.Context, factor int) (err error) {
	dir := s.store.Dir()
	if err := s.store.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "sessions.db")) // driver registered by package sqlite
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
		s.store = Open(dir).store
	}()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "PRAGMA cache_size = -262144"); err != nil { // KiB; enough for the indexes
		return err
	}
	names, values, err := columns(ctx, db)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`
		WITH RECURSIVE copies (copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < %d),
			top (strands) AS (SELECT last FROM numbers)
		INSERT INTO sessions (%s)
		SELECT %s FROM sessions, copies, top WHERE sessions.last = 0`, factor-1, names, values))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE numbers SET last = (SELECT max(strand) FROM sessions)")
	return err
}

// columns returns the columns of a session's row, and the values of a copy.
func columns(ctx context.Context, db *sql.DB) (names, values string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info('sessions')")
	if err != nil {
		return "", "", err
	}
	defer rows.Close()
	var own, copied []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", "", err
		}
		own = append(own, name)
		switch name {
		case "id":
			name = "id || '-' || copy"
		case "key", "strand":
			name += " + copy * strands"
		case "updated":
			name = "updated - copy"
		}
		copied = append(copied, name)
	}
	return strings.Join(own, ", "), strings.Join(copied, ", "), rows.Err()
}
