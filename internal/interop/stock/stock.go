// Package stock fills a session store before the program starts on it: with many sessions, or
// with a long history, which would take too long to make through the program.
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

// Store is a store that is being filled.
type Store struct {
	store *sqlite.Store
}

// Session is a session to store. Its history is one finished turn, of chunks and then messages.
type Session struct {
	ID string
	// Cwd and Directories are its roots, by real path.
	Cwd         string
	Directories []string
	// Chunks is the number of updates of one message, which are recorded as they are when they stream by:
	// neighbours become one. [Chunk] is their text.
	Chunks int
	// Messages is the number of messages of one update each, which stay as many. [Message] is their text.
	Messages int
}

// Chunk is the text of a session's i-th chunk.
func Chunk(i int) string { return fmt.Sprint("update ", i, "\n") }

// Message is the text of a session's i-th message.
func Message(i int) string { return fmt.Sprint("message ", i, "\n") }

// Open returns the store in a state directory. The caller closes it before the program starts.
func Open(stateDir string) *Store {
	return &Store{store: sqlite.New(sqlite.Options{Dir: stateDir})}
}

// Close frees the store.
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
	lease, err := s.store.Create(ctx, sessionstore.NewSession{
		ID:    sessionstore.ID(n.ID),
		Agent: sessionstore.Agent{Kind: "explore"},
		Keys:  keys,
		Title: "stocked",
	})
	if err != nil || n.Chunks+n.Messages == 0 {
		return err
	}
	if err := s.store.BeginTurn(ctx, lease, sessionstore.Turn{}); err != nil {
		return err
	}
	if err := s.record(ctx, lease, n); err != nil {
		return err
	}
	return s.store.EndTurn(ctx, lease, "end_turn")
}

// record records a history as the program does.
func (s *Store) record(ctx context.Context, lease sessionstore.Lease, n Session) error {
	r := sessionstore.NewRecorder(s.store, lease, sessionstore.RecorderOptions{})
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

// Multiply stores every session without a history factor-1 times more, under ids of its own. It is
// much faster than storing them one by one, and knows of the store only what makes a
// row distinct: key, id, strand, and the time of its last activity, which is spread over the copies.
func (s *Store) Multiply(ctx context.Context, factor int) (err error) {
	dir := s.store.Dir()
	if err := s.store.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "sessions.db")) // the driver comes with package sqlite
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
	if _, err := db.ExecContext(ctx, "PRAGMA cache_size = -262144"); err != nil { // KiB: the indexes fit in
		return err
	}
	names, values, err := columns(ctx, db)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`
		WITH RECURSIVE copies (copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < %d),
			top (strands) AS (SELECT generations FROM meta)
		INSERT INTO sessions (%s)
		SELECT %s FROM sessions, copies, top WHERE last = 0`, factor-1, names, values))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE meta SET generations = (SELECT max(strand) FROM sessions)")
	return err
}

// columns are the columns of a session's row but its key, and what a copy has in them.
func columns(ctx context.Context, db *sql.DB) (names, values string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info('sessions') WHERE name <> 'key'")
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
		case "strand":
			name = "strand + copy * strands"
		case "updated":
			name = "updated - copy"
		}
		copied = append(copied, name)
	}
	return strings.Join(own, ", "), strings.Join(copied, ", "), rows.Err()
}
