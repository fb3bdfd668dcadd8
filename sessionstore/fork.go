package sessionstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// TurnCounter numbers the turns of a history, from 1. The zero value has read nothing.
type TurnCounter struct {
	turns     int64
	prompting bool
}

// Next returns the number of the turn that the next update belongs to, and whether the turn begins
// with it: it begins with the blocks of a prompt.
func (c *TurnCounter) Next(u Update) (turn int64, begins bool) {
	wasPrompting := c.prompting
	c.prompting = u.Kind == UserMessageChunk
	if begins = c.prompting && !wasPrompting; begins {
		c.turns++
	}
	return c.turns, begins
}

// ForkBefore stores n with the part of the source's history before a turn, which has ended. For an
// unknown turn it stores nothing and returns an error. [Sessions.Fork] copies the whole.
func ForkBefore(ctx context.Context, s Store, source ID, turn int64, n Session) error {
	history, err := s.NewDraft(ctx, "")
	if err != nil {
		return err
	}
	var c TurnCounter
	found := false
	err = Fill(ctx, history, func(yield func(Update, error) bool) {
		for u, err := range s.Finished(ctx, source) {
			at, begins := c.Next(u)
			if found = begins && at == turn; found || !yield(u, err) {
				return
			}
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no turn %d: the session has %d that ended", turn, c.turns)
	}
	if err == nil {
		n.Turns, n.Created = turn-1, time.Now()
		n.Updated = n.Created
		_, err = s.Restore(ctx, n, history, nil)
	}
	if err != nil {
		err = errors.Join(err, history.Discard(context.WithoutCancel(ctx)))
	}
	return err
}

// Fill appends a history to a draft.
func Fill(ctx context.Context, d Draft, history iter.Seq2[Update, error]) error {
	const batchBytes = 1 << 20
	var batch []Update
	size := 0
	for u, err := range history {
		if err != nil {
			return err
		}
		batch = append(batch, u)
		if size += len(u.Raw); size >= batchBytes {
			if err := d.Append(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	return d.Append(ctx, batch)
}
