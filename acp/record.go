package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// addToRecord records u. A warning is recorded as the message that it is for clients without
// notices, if the first viewer is one.
func (s *session) addToRecord(ctx context.Context, u backend.Update) error {
	if message, ok := backend.WarningMessage(u); ok {
		if s.viewers.firstTakesNotices() {
			return nil
		}
		u = message
	}
	return s.record.Add(ctx, u)
}

// appendSegment stores a segment, and the latest title in it.
func (s *session) appendSegment(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	title, store := latestTitle(segment), s.agent.options.Store
	err := store.Append(ctx, l, segment)
	if err != nil || title == nil {
		return err
	}
	s.titled.Store(*title != "")
	return store.SetTitle(ctx, l, *title)
}
