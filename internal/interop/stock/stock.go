package stock

import (
	"context"
	"fmt"

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
