package sessions

import (
	"context"
	"iter"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// All yields the sessions that q selects, most recently active first. It stops after an error.
func All(
	ctx context.Context, store sessionstore.Sessions, q sessionstore.Query,
) iter.Seq2[sessionstore.Session, error] {
	return func(yield func(sessionstore.Session, error) bool) {
		for q.Limit = sessionstore.MaxPageSize; ; {
			page, err := store.List(ctx, q)
			if err != nil {
				yield(sessionstore.Session{}, err)
				return
			}
			for _, session := range page.Sessions {
				if !yield(session, nil) {
					return
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}
