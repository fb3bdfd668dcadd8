package sessions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Counts says what [Copy] has done.
type Counts struct {
	Total   int // sessions to copy
	Copied  int
	Present int // sessions that the other store has, used as late or later
}

// String describes what was done.
func (c Counts) String() string {
	counts := text.Count(c.Copied, "session", "sessions")
	if c.Present > 0 {
		counts += "; " + text.Count(c.Present, "was", "were") +
			" there already, used at least as recently"
	}
	return counts
}

// Copy copies the sessions of all owners, except those that the other store has, used as late or
// later. It calls progress before each session. Sessions that were continued in both stores stay as
// they are, and are an error once the others are copied.
func Copy(
	ctx context.Context, from, to sessionstore.Shared, progress func(Counts),
) (Counts, error) {
	c, left, err := copyAll(ctx, from, to, progress)
	if err != nil {
		return c, fmt.Errorf("%w; run the command again to copy the rest", err)
	}
	return c, errors.Join(left...)
}

// copyAll copies the sessions, once they are counted. left has an error for each session that was
// continued in both stores.
func copyAll(
	ctx context.Context, from, to sessionstore.Shared, progress func(Counts),
) (c Counts, left []error, err error) {
	owners, err := from.Owners(ctx)
	if err != nil {
		return c, nil, err
	}
	type owned struct {
		owner string
		id    sessionstore.ID
	}
	var all []owned
	for _, owner := range owners {
		for one, err := range All(ctx, from.For(owner), sessionstore.Query{}) {
			if err != nil {
				return c, nil, err
			}
			all = append(all, owned{owner, one.ID})
		}
	}
	c.Total = len(all)
	for _, one := range all {
		progress(c)
		stored, err := copySession(ctx, from.For(one.owner), to.For(one.owner), one.id)
		switch {
		case errors.As(err, new(*sessionstore.NotFoundError)):
			c.Total-- // it was deleted since
		case errors.As(err, new(*sessionstore.UnavailableError)):
			return c, left, err
		case errors.Is(err, errContinued):
			left = append(left, fmt.Errorf("session %s %w", one.id, err))
		case err != nil:
			return c, left, fmt.Errorf("session %s: %w", one.id, err)
		case stored:
			c.Copied++
		default:
			c.Present++
		}
	}
	for _, owner := range owners {
		if err := copyDeleted(ctx, from.For(owner), to.For(owner)); err != nil {
			return c, left, err
		}
	}
	return c, left, nil
}

// Readable says what CopyReadable has copied.
type Readable struct {
	Copied int               `json:"sessions"`
	Lost   []sessionstore.ID `json:"lost,omitempty"` // as far as they are listed
}

// CopyReadable copies what can be read of a damaged store.
func CopyReadable(ctx context.Context, from, to sessionstore.Shared) (r Readable, err error) {
	owners, err := from.Owners(ctx)
	if err != nil {
		return r, ctx.Err()
	}
	for _, owner := range owners {
		from, to := from.For(owner), to.For(owner)
		for one, err := range All(ctx, from, sessionstore.Query{}) {
			if err != nil {
				break // the rest cannot be found
			}
			if _, err := copySession(ctx, from, to, one.ID); err != nil {
				r.Lost = append(r.Lost, one.ID)
			} else {
				r.Copied++
			}
		}
		_ = copyDeleted(ctx, from, to)
	}
	return r, ctx.Err()
}

// copyDeleted makes a store remember the deleted sessions that another one does.
func copyDeleted(ctx context.Context, from, to sessionstore.Copies) error {
	deleted, err := from.Deleted(ctx)
	for agent, some := range deleted {
		if err == nil {
			err = to.RestoreDeleted(ctx, agent, some)
		}
	}
	return err
}

// errContinued is the error for a session whose copy has turns that it lacks itself.
var errContinued = errors.New("was continued in both stores, and was changed in neither: " +
	"to have both versions in one store, export one and import it there")

// copySession copies a session, unless to has it, used as late or later. If it fails, to has
// nothing of it.
func copySession(
	ctx context.Context, from, to sessionstore.Store, id sessionstore.ID,
) (stored bool, err error) {
	one, err := from.Get(ctx, id)
	if err != nil {
		return false, err
	}
	// Most are there if the command is repeated. Restore decides.
	if there, err := to.Get(ctx, id); err == nil {
		if !there.Updated.Before(one.Updated) {
			return false, nil
		}
		err := checkContinues(prompts(from.History(ctx, id)), prompts(to.History(ctx, id)))
		if err != nil {
			return false, err
		}
	}
	history, err := to.NewDraft(ctx, "")
	if err != nil {
		return false, err
	}
	charges, err := from.Charges(ctx, id)
	if err == nil {
		err = copyHistory(ctx, from, id, history)
	}
	if err == nil {
		stored, err = to.Restore(ctx, one, history, charges)
	}
	if !stored {
		err = errors.Join(err, history.Discard(context.WithoutCancel(ctx)))
	}
	return stored, err
}

// copyHistory copies the history of a session, and its states.
func copyHistory(
	ctx context.Context, from sessionstore.Histories, id sessionstore.ID, to sessionstore.Draft,
) error {
	states, err := from.States(ctx, id)
	if err != nil {
		return err
	}
	if err := to.Append(ctx, states); err != nil {
		return err
	}
	return sessionstore.Fill(ctx, to, from.History(ctx, id))
}

// checkContinues returns an error unless prompts begin with those of an older copy.
func checkContinues(prompts, older iter.Seq2[sessionstore.Update, error]) error {
	next, stop := iter.Pull2(prompts)
	defer stop()
	for before, err := range older {
		if err != nil {
			return err
		}
		prompt, err, ok := next()
		if err != nil {
			return err
		}
		if !ok || !bytes.Equal(prompt.Raw, before.Raw) {
			return errContinued
		}
	}
	return nil
}

// prompts yields the blocks of the prompts in a history.
func prompts(history iter.Seq2[sessionstore.Update, error]) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		for u, err := range history {
			if (err != nil || u.Kind == sessionstore.UserMessageChunk) && !yield(u, err) {
				return
			}
		}
	}
}
