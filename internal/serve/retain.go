package serve

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// retainEvery is the time between two looks for sessions that are too old.
const retainEvery = time.Hour

// retain deletes the users' old sessions every hour, until ctx ends.
func (s *Server) retain(ctx context.Context) {
	for now := range pause.Every(ctx, retainEvery) {
		if err := s.deleteOld(ctx, now); err != nil && ctx.Err() == nil {
			s.options.Log.Warn("cannot delete old sessions; it is tried again", "error", err)
		}
	}
}

// deleteOld deletes the sessions of users that are too old, also those of users who were revoked.
// Sessions of the local user stay.
func (s *Server) deleteOld(ctx context.Context, now time.Time) error {
	q := sessionstore.PruneQuery{UnusedBefore: now.Add(-sessionstore.Retention)}
	if age := s.options.DeleteAfter; age > 0 {
		q.Before = now.Add(-age)
	}
	owners, err := s.options.Store.Owners(ctx)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if owner == "" {
			continue
		}
		n, err := s.options.Store.For(owner).Prune(ctx, q)
		if n > 0 {
			s.options.Log.Info("deleted old sessions: "+text.Count(n, "session", "sessions"),
				"user", owner)
			s.options.Audit.Info("deleted old sessions", "user", owner, "sessions", n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
