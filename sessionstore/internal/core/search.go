package core

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Messages are indexed when their turn ends, in the same transaction. The next search indexes the
// rest: histories that were imported, restored, drafted or forked, the end of a very long turn, and
// turns that are still running or never ended.

// indexBytes limits how much of a history is indexed in one transaction.
const indexBytes = 512 << 10

// index adds the passages of the next part of a session's history to the index, and reports whether
// it came to the end. The caller has locked the session.
func (tx *transaction) index(r *row) (done bool) {
	// The last passage may have been incomplete.
	tx.exec("DELETE FROM passages WHERE owner = $1 AND strand = $2 AND seq > $3",
		r.strand, r.complete)
	var p sessionstore.Passages
	last := r.complete
	for size := 0; size < indexBytes && last < r.last; {
		bodies := tx.part(r, last, r.last)
		if len(bodies) == 0 {
			must(errMissingPart)
		}
		for _, body := range bodies {
			last++
			for u := range sessionstore.Unpack(body) {
				p.Add(last, u)
			}
			size += len(body)
		}
	}
	done = last == r.last
	open := p.Open()
	p.End()
	each := make([][]any, len(p.Done))
	for i, done := range p.Done {
		each[i] = append([]any{r.strand, done.Seq, r.updated, string(done.Role)},
			tx.db.Indexed(tx.owner, done.Text)...)
	}
	tx.execEach(tx.db.Traits().AddPassage, each)
	r.complete = indexed(r.complete, last, open, done, len(r.running) > 0)
	r.seen = last
	return done
}

// indexAgain makes the passages of the end of a history again, of which a part was removed.
func (tx *transaction) indexAgain(r *row) {
	var begin int64 // of a passage that may go on in what was removed
	tx.row([]any{&begin}, "SELECT coalesce(max(seq), 1) FROM passages "+
		"WHERE owner = $1 AND strand = $2 AND seq <= $3", r.strand, r.last)
	r.complete = min(r.complete, begin-1)
	tx.index(r)
}

// indexed returns the last segment whose passages are complete, once the segments after after up to
// last are indexed. The passage that begins in the segment open, if that is not 0, is made again if
// more may follow: done says that last is the end of the history, running that a turn is. A passage
// too long for one transaction is cut.
func indexed(after, last, open int64, done, running bool) int64 {
	if open > 0 && (done && running || !done && open-1 > after) {
		return open - 1
	}
	return last
}

// indexRest indexes what was stored and is not indexed yet. Sessions with the latest activity come
// last, as if they had been indexed when they were stored.
func (s *Store) indexRest(ctx context.Context) error {
	ids, err := transact(ctx, s, Read, func(tx *transaction) []string {
		return column[string](tx.rows(
			"SELECT id FROM sessions WHERE owner = $1 AND stale ORDER BY updated, id"))
	})
	for _, id := range ids {
		for done := false; err == nil && !done; {
			done, err = transact(ctx, s, Write, func(tx *transaction) bool {
				r := tx.lock(sessionstore.ID(id))
				if r == nil {
					return true
				}
				done := tx.index(r)
				tx.store(r)
				return done
			})
		}
	}
	return err
}

// Search implements [sessionstore.Store].
func (s *Store) Search(
	ctx context.Context, q sessionstore.SearchQuery,
) ([]sessionstore.Found, error) {
	terms := q.Terms()
	if len(terms) == 0 || !utf8.ValidString(s.owner) { // which no owner of a session has
		return nil, nil
	}
	if err := s.listing.acquire(ctx, s.owner); err != nil {
		return nil, err
	}
	defer s.listing.release(s.owner)
	if err := s.indexRest(ctx); err != nil {
		return nil, err
	}
	return transact(ctx, s, Read, func(tx *transaction) []sessionstore.Found {
		return tx.found(q, got(tx.db.FindPassages(tx.tx, tx.owner, terms, q.Size())))
	})
}

// found returns what passages look like.
func (tx *transaction) found(q sessionstore.SearchQuery, keys []int64) (all []sessionstore.Found) {
	if len(keys) == 0 {
		return nil
	}
	parsed := make(parsedKeys)
	list, args := placeholders(keys, 2)
	for rows := range tx.rows("SELECT "+recordColumns+", p.role, p.said, p.seq, p.body "+
		"FROM passages p JOIN sessions s ON s.owner = p.owner AND s.strand = p.strand "+
		"WHERE p.owner = $1 AND p.key IN ("+list+") ORDER BY p.key DESC", args...) {
		var (
			f    sessionstore.Found
			said int64
			text string
			err  error
		)
		f.Session, err = scanRecord(rows, parsed, (*string)(&f.Role), &said, &f.Segment, &text)
		if tx.skipDamaged(f.Session.ID, err) {
			continue
		}
		f.Time = toTime(said)
		text = strings.ReplaceAll(text, string(Separator), "")
		matches := q.Matches(text)
		if len(matches) == 0 { // databases may treat other characters as letters
			matches = []sessionstore.Match{{End: len(text)}}
		}
		f.Line, f.Matches = sessionstore.BestLine(text, matches)
		all = append(all, f)
	}
	return all
}

// Separator may separate words in the body of a passage. It is not a part of the text.
const Separator = '\x01'
