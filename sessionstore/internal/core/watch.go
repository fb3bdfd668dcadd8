package core

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// watches are the sessions that are watched in this process.
type watches struct {
	mu sync.Mutex
	// names are those that the database announces, nil until something is watched.
	names map[chan struct{}]string
}

// Watch implements [sessionstore.Store].
func (s *Store) Watch(id sessionstore.ID) (changed <-chan struct{}, stop func()) {
	if !s.db.Traits().Announces {
		return nil, func() {}
	}
	s.using.RLock()
	defer s.using.RUnlock()
	w, c := &s.watches, make(chan struct{}, 1)
	c <- struct{}{} // something may have happened before
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names = make(map[chan struct{}]string)
		s.background.Go(func() { s.db.Listen(s.life, w.tell) }) // ends at once in a closed store
	}
	w.names[c] = announced(s.owner, id)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.names, c)
	}
}

// announced returns the name of a session in announcements.
func announced(owner string, id sessionstore.ID) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + string(id)))
	return hex.EncodeToString(sum[:])
}

// tell tells those who watch the session with this name, or everybody if it is "".
func (w *watches) tell(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, watched := range w.names {
		if name != "" && name != watched {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}
