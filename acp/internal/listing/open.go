package listing

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxForeignID is the longest id in a request that can be the backend's own, in bytes.
const maxForeignID = 1 << 10

// Openable is a session that a request may open: a stored one, or one that only the backend may
// know.
type Openable struct {
	sessionstore.Session
	// Unstored says that the store does not have the session.
	Unstored bool
	// Unlisted says that the backend lists its sessions, but not this one.
	Unlisted bool
}

// Find returns the session that a request with the given cwd names. If it is not stored, the id may
// be the backend's own.
func (s *Sessions) Find(
	ctx context.Context, id sessionstore.ID, cwd workspace.Dir,
) (Openable, error) {
	stored, err := s.Stored(ctx, id)
	state := s.foreignState(id)
	if !isUnknown(err) || state == nil {
		return Openable{Session: stored}, err
	}
	own, listErr := s.findListed(ctx, string(id), cwd)
	if listErr != nil { // whether it exists shows when it is opened
		own = backend.ForeignSession{State: state, Cwd: cwd}
	}
	n, err := s.convert(ctx, own, s.newRealPaths())
	n.ID = id
	return Openable{Unstored: true, Unlisted: isUnknown(listErr), Session: n}, err
}

// foreignState returns the state of the session that has an id in the backend, or nil if none can
// have it.
func (s *Sessions) foreignState(id sessionstore.ID) []byte {
	if s.Foreign == nil || len(id) > maxForeignID {
		return nil
	}
	return s.Foreign.State(string(id))
}

// OnlyBackendKnows reports whether nothing of the session's conversation is stored here, so that
// only the backend can continue it.
func (s *Sessions) OnlyBackendKnows(ctx context.Context, o Openable) bool {
	if o.Unstored || o.Listed.IsZero() || o.Turns > 0 {
		return o.Unstored
	}
	for range s.Store.History(ctx, o.ID) {
		return false
	}
	return true
}

// findListed looks for a session in the backend's list, for a limited time. It returns
// [*sessionstore.NotFoundError] if the list does not have it.
func (s *Sessions) findListed(
	ctx context.Context, key string, cwd workspace.Dir,
) (backend.ForeignSession, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Times.Wait)
	defer cancel()
	var failed error = &sessionstore.NotFoundError{ID: sessionstore.ID(key)}
	for _, in := range []*workspace.Dir{&cwd, nil} {
		for own, err := range s.Foreign.Sessions(ctx, in) {
			if errors.Is(err, backend.ErrPartial) {
				break
			}
			if err != nil {
				s.Log.Debug("cannot list the agent's sessions", "error", err)
				failed = err
				break
			}
			if s.Foreign.Key(own.State) == key && !own.Cwd.IsZero() {
				return own, nil
			}
		}
	}
	return backend.ForeignSession{}, failed
}
