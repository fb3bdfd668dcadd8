package core

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// pageSegments and pageBytes limit how much of a history is read at once.
	pageSegments = 128
	pageBytes    = 512 << 10
)

// BeginTurn implements [sessionstore.Store].
func (s *Store) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (number int64, err error) {
	prompt, states := sessionstore.Split(t.Prompt)
	return transact(ctx, s, Write, func(tx *transaction) int64 {
		r := tx.hold(l)
		tx.begins = true
		if !t.Overlaps {
			r.interruptTurns(tx.now())
		}
		r.turns++
		r.running = append(r.running, r.turns)
		if r.open == 0 {
			r.open, r.first = r.last+1, r.turns
		}
		r.updated = active(r.updated, tx.now())
		if r.gone {
			r.listed, r.gone = 0, false
		}
		r.title = cmp.Or(r.title, sessionstore.CleanTitle(t.Title))
		r.last = tx.addBodies(r.strand, r.last, packed(prompt))
		tx.addStates(r.key, states)
		tx.store(r)
		return r.turns
	})
}

// EndTurn implements [sessionstore.Store].
func (s *Store) EndTurn(
	ctx context.Context, l sessionstore.Lease, number int64, last ...sessionstore.Update,
) error {
	history, states := sessionstore.Split(last)
	return s.change(ctx, func(tx *transaction) {
		r := tx.hold(l)
		i := slices.Index(r.running, number)
		if i < 0 {
			return
		}
		begin := r.open
		r.running = slices.Delete(r.running, i, i+1)
		if len(r.running) == 0 {
			r.open = 0
		}
		r.last = tx.addBodies(r.strand, r.last, packed(history))
		tx.addStates(r.key, states)
		r.updated = active(r.updated, tx.now())
		if r.complete+1 >= begin { // otherwise a search has to index more
			tx.index(r)
		}
		tx.store(r)
	})
}

// TakeBackTurn implements [sessionstore.Store]. It leaves the time of the last activity.
func (s *Store) TakeBackTurn(
	ctx context.Context, l sessionstore.Lease, number int64, t sessionstore.Turn,
) (taken bool, err error) {
	prompt, _ := sessionstore.Split(t.Prompt)
	added := int64(len(packed(prompt)))
	return transact(ctx, s, Write, func(tx *transaction) bool {
		r := tx.hold(l)
		if !slices.Equal(r.running, []int64{number}) || r.first != number ||
			r.turns != number || r.last != r.open-1+added {
			return false
		}
		r.turns, r.last, r.open, r.running = number-1, r.open-1, 0, nil
		tx.exec("DELETE FROM segments WHERE owner = $1 AND strand = $2 AND seq > $3",
			r.strand, r.last)
		if r.seen > r.last {
			tx.indexAgain(r)
		}
		if r.title == sessionstore.CleanTitle(t.Title) && !r.renamed {
			r.title = ""
		}
		tx.store(r)
		return true
	})
}

// interruptTurns ends the running turns.
func (r *row) interruptTurns(now int64) {
	if r.open != 0 {
		r.open, r.running, r.updated = 0, nil, active(r.updated, now)
	}
}

// Append implements [sessionstore.Store]. It is called often, so it does not write the whole row:
// then databases would write every index.
func (s *Store) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	history, states := sessionstore.Split(segment)
	if len(history) == 0 && len(states) == 0 {
		return s.checkLease(ctx, l)
	}
	bodies := packed(history)
	return s.change(ctx, func(tx *transaction) {
		if l.ID.Validate() != nil {
			must(&sessionstore.NotFoundError{ID: l.ID})
		}
		var (
			key, strand, last int64
			listing           listing
			stale             bool
		)
		if !tx.row([]any{&key, &strand, &last, (*int64)(&listing), &stale}, `
			UPDATE sessions SET last = last + $4 WHERE owner = $1 AND id = $2 AND generation = $3
			RETURNING key, strand, last - $4, listing, stale`,
			string(l.ID), l.Generation, int64(len(bodies))) {
			mustHold(l, tx.find(l.ID))
			must(ErrChanged)
		}
		if len(bodies) > 0 && (!stale || listing == unusedList) {
			tx.exec("UPDATE sessions SET stale = TRUE, listing = CASE listing "+
				"WHEN $3 THEN $4 ELSE listing END WHERE owner = $1 AND id = $2",
				string(l.ID), int64(unusedList), int64(ordinaryList))
		}
		tx.addBodies(strand, last, bodies)
		tx.addStates(key, states)
	})
}

// checkLease returns an error unless l is the newest lease of its session.
func (s *Store) checkLease(ctx context.Context, l sessionstore.Lease) error {
	_, err := transact(ctx, s, Read, func(tx *transaction) *row {
		return mustHold(l, tx.find(l.ID))
	})
	return err
}

// packed returns updates as the bodies of segments.
func packed(updates []sessionstore.Update) (bodies [][]byte) {
	for len(updates) > 0 {
		body, n := sessionstore.Pack(updates)
		bodies, updates = append(bodies, body), updates[n:]
	}
	return bodies
}

// addBodies appends segments to a strand after the number last, and returns that of the last one.
func (tx *transaction) addBodies(strand, last int64, bodies [][]byte) int64 {
	each := make([][]any, len(bodies))
	for i, body := range bodies {
		last++
		tx.take(len(body))
		each[i] = []any{strand, last, body}
	}
	tx.execEach("INSERT INTO segments (owner, strand, seq, body) VALUES ($1, $2, $3, $4)", each)
	return last
}

// addStates stores the latest update of each state kind.
func (tx *transaction) addStates(session int64, states []sessionstore.Update) {
	each := make([][]any, len(states))
	for i, u := range states {
		tx.take(len(u.Raw))
		each[i] = []any{session, string(u.Kind), []byte(u.Raw)}
	}
	tx.execEach(`
		INSERT INTO states (owner, session, kind, body) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, session, kind) DO UPDATE SET body = excluded.body`, each)
}

// History implements [sessionstore.Store].
func (s *Store) History(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return sessionstore.Updates(s.Segments(ctx, id, 0))
}

// Segments implements [sessionstore.Store].
func (s *Store) Segments(
	ctx context.Context, id sessionstore.ID, after int64,
) iter.Seq2[sessionstore.Segment, error] {
	return s.segments(ctx, id, after, func(r *row) int64 { return r.last })
}

// Finished implements [sessionstore.Store].
func (s *Store) Finished(
	ctx context.Context, id sessionstore.ID,
) iter.Seq2[sessionstore.Update, error] {
	return sessionstore.Updates(s.segments(ctx, id, 0, func(r *row) int64 {
		last, _ := r.finished()
		return last
	}))
}

// segments yields the segments of a history whose numbers are greater than after, up to the one
// that last returns.
func (s *Store) segments(
	ctx context.Context, id sessionstore.ID, after int64, last func(*row) int64,
) iter.Seq2[sessionstore.Segment, error] {
	return func(yield func(sessionstore.Segment, error) bool) {
		var begun *row
		for seq := max(after, 0); begun == nil || seq < last(begun); {
			page, err := transact(ctx, s, Read, func(tx *transaction) [][]byte {
				if begun == nil {
					begun = mustExist(id, tx.find(id))
				}
				return tx.part(begun, seq, last(begun))
			})
			if err != nil {
				yield(sessionstore.Segment{}, err)
				return
			}
			if len(page) == 0 { // the rest was taken back
				return
			}
			for _, body := range page {
				seq++
				if !yield(sessionstore.Segment{Number: seq, Body: body}, nil) {
					return
				}
			}
		}
	}
}

// part returns the next segments of a history after seq, up to end, as long as it is that of the
// session in r. If it finds none, it finds out why.
func (tx *transaction) part(r *row, seq, end int64) (bodies [][]byte) {
	size := 0
	for rows := range tx.rows(`
		SELECT body FROM segments WHERE owner = $1 AND strand = $2 AND seq > $3 AND seq <= $4
			AND EXISTS (SELECT 1 FROM sessions WHERE owner = $1 AND id = $5 AND strand = $2)
		ORDER BY seq LIMIT $6`, r.strand, seq, end, string(r.id), pageSegments) {
		var body []byte
		must(rows.Scan(&body))
		bodies = append(bodies, body)
		if size += len(body); size >= pageBytes {
			break
		}
	}
	if len(bodies) > 0 || seq >= end {
		return bodies
	}
	switch now := mustExist(r.id, tx.find(r.id)); {
	case now.strand != r.strand: // another session has the id
		must(&sessionstore.NotFoundError{ID: r.id})
	case seq < now.last:
		must(errMissingPart)
	}
	return nil
}

// States implements [sessionstore.Store]. It leaves out damaged ones.
func (s *Store) States(ctx context.Context, id sessionstore.ID) ([]sessionstore.Update, error) {
	return transact(ctx, s, Read, func(tx *transaction) (states []sessionstore.Update) {
		bodies := make(map[sessionstore.Kind][]byte)
		for rows := range tx.rows("SELECT kind, body FROM states "+
			"WHERE owner = $1 AND session = $2", mustExist(id, tx.find(id)).key) {
			var (
				kind sessionstore.Kind
				body []byte
			)
			must(rows.Scan((*string)(&kind), &body))
			bodies[kind] = body
		}
		for _, kind := range sessionstore.StateKinds() {
			if u, err := sessionstore.ParseUpdate(bodies[kind]); err == nil && u.Kind == kind {
				states = append(states, u)
			}
		}
		return states
	})
}
