package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Messages are indexed when their turn ends, in the same transaction. The next search indexes the
// rest: histories that a repair or a draft stored, the rest of a very long turn, and turns that are
// still running or never ended. The table unindexed records where something is left to do.

// indexTime is about how long a piece of indexing may hold the write lock.
const indexTime = 20 * time.Millisecond

// separator separates words without spaces.
const separator = '\x01'

// index adds the passages of the next part of a strand, and reports whether it came to the end.
func index(tx *transaction, strand int64) (done bool, err error) {
	var (
		after, seen, said int64
		running           bool
	)
	err = tx.row(`
		SELECT after, seen, coalesce(
				(SELECT updated FROM sessions WHERE strand = ?1),
				(SELECT min(updated) FROM inherits JOIN sessions ON key = session
					WHERE inherits.strand = ?1), 0),
			EXISTS (SELECT 1 FROM sessions WHERE strand = ?1 AND open > 0)
		FROM unindexed WHERE strand = ?1`, strand).Scan(&after, &seen, &said, &running)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// The last passage may have been incomplete.
	err = tx.exec("DELETE FROM passages WHERE strand = ? AND seq > ?", strand, after)
	if err != nil {
		return false, err
	}
	var p sessionstore.Passages
	last, done, err := readPassages(tx, strand, after, &p)
	if err != nil {
		return false, err
	}
	open := p.Open()
	p.End()
	for _, passage := range p.Done {
		err := tx.exec(
			"INSERT INTO passages (strand, seq, said, role, body) VALUES (?, ?, ?, ?, ?)",
			strand, passage.Seq, said, string(passage.Role), separated(passage.Text))
		if err != nil {
			return false, err
		}
	}
	if done && !running {
		return true, tx.exec("DELETE FROM unindexed WHERE strand = ?", strand)
	}
	err = tx.exec("UPDATE unindexed SET after = ?, seen = ? WHERE strand = ?",
		rules.Indexed(after, last, open, done, running), max(last, seen), strand)
	return done, err
}

// readPassages adds the next part of a strand to p. It returns the last segment that it read, and
// whether that is the end.
func readPassages(
	tx *transaction, strand, after int64, p *sessionstore.Passages,
) (last int64, done bool, err error) {
	last = after
	rows, err := tx.query(
		"SELECT seq, turn, body FROM segments WHERE strand = ? AND seq > ? ORDER BY seq",
		strand, after)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	for size := 0; size < rules.IndexBytes; {
		if !rows.Next() {
			return last, true, rows.Err()
		}
		var (
			turn int64
			body sql.RawBytes
		)
		if err := rows.Scan(&last, &turn, &body); err != nil {
			return 0, false, err
		}
		for u := range sessionstore.Unpack(body) {
			p.Add(last, turn, u)
		}
		size += len(body)
	}
	return last, false, nil
}

// separated returns a text as it is indexed: characters that are words by themselves are
// separated.
func separated(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	alone := false
	for i, r := range text {
		if r <= separator {
			r = ' '
		}
		before := alone
		alone = sessionstore.IsAlone(r)
		if i > 0 && (before || alone) {
			b.WriteRune(separator)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// indexRest indexes what was stored and is not indexed yet.
func (s *medium) indexRest(ctx context.Context) error {
	var strands []int64
	err := s.read(ctx, func(tx *transaction) error {
		strands = nil
		// Strands of drafts have no session. Sessions with the latest activity come last, as if
		// they had been indexed when they were stored.
		return tx.each(`
			SELECT strand FROM unindexed AS u
			WHERE EXISTS (SELECT 1 FROM segments WHERE strand = u.strand AND seq > u.seen)
				AND (EXISTS (SELECT 1 FROM sessions WHERE strand = u.strand)
					OR EXISTS (SELECT 1 FROM inherits WHERE strand = u.strand))
			ORDER BY (SELECT updated FROM sessions WHERE strand = u.strand), strand`, nil,
			func(rows *sql.Rows) error {
				var strand int64
				err := rows.Scan(&strand)
				strands = append(strands, strand)
				return err
			})
	})
	for err == nil && len(strands) > 0 {
		n := 0
		err = s.write(ctx, func(tx *transaction) error {
			n = 0
			for start := time.Now(); n < len(strands) && time.Since(start) < indexTime; {
				done, err := index(tx, strands[n])
				if err != nil {
					return err
				}
				if done {
					n++
				}
			}
			return nil
		})
		strands = strands[n:]
		if err == nil && len(strands) > 0 {
			err = pause.For(ctx, minPause)
		}
	}
	return err
}

// Search implements [sessionstore.Searcher].
func (s *Store) Search(
	ctx context.Context, q sessionstore.SearchQuery,
) (all []sessionstore.Found, err error) {
	expression := matchExpression(q.Terms())
	if expression == "" {
		return nil, nil
	}
	if err := s.indexRest(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := s.owner.agents(tx, sessionstore.Agent{})
		if err != nil {
			return err
		}
		hits, err := findPassages(tx, expression, agents, q.Size())
		if err != nil {
			return err
		}
		all, err = s.found(tx, q, hits, agents)
		return err
	})
	return all, err
}

// matchExpression returns a full-text query for terms. Whatever they contain, it is valid.
func matchExpression(terms []sessionstore.Term) string {
	var b strings.Builder
	for _, t := range terms {
		text := separated(t.Text)
		// FTS5 takes a string in quotes as a phrase, "" as a quote, and * as any end of the word.
		b.WriteString(`"` + strings.ReplaceAll(text, `"`, `""`) + `" `)
		if t.Prefix {
			b.WriteString("* ")
		}
	}
	return b.String()
}

// hit is a passage that matches, in a session.
type hit struct{ passage, session int64 }

// findPassages returns the passages that match, the last ones first.
func findPassages(
	tx *transaction, expression string, agents map[int64]sessionstore.Agent,
	limit int,
) (hits []hit, err error) {
	rows, err := tx.query(`
		SELECT words.rowid, sessions.key
		FROM words CROSS JOIN passages ON passages.key = words.rowid CROSS JOIN sessions ON sessions.key IN (
			SELECT key FROM sessions WHERE strand = passages.strand UNION ALL
			SELECT session FROM inherits WHERE strand = passages.strand AND last >= passages.seq)
		WHERE words MATCH ?1 AND agent IN (SELECT value FROM json_each(?2))
		ORDER BY words.rowid DESC`, expression, asJSON(slices.Collect(maps.Keys(agents))))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	in := make(map[int64]int)
	for len(hits) < limit && rows.Next() {
		var h hit
		if err := rows.Scan(&h.passage, &h.session); err != nil {
			return nil, err
		}
		if in[h.session]++; in[h.session] <= sessionstore.MaxFoundInSession {
			hits = append(hits, h)
		}
	}
	return hits, rows.Err()
}

// found returns what hits look like.
func (s *Store) found(
	tx *transaction, q sessionstore.SearchQuery, hits []hit,
	agents map[int64]sessionstore.Agent,
) (all []sessionstore.Found, err error) {
	parsed := make(parsedKeys)
	sessions := make(map[int64]sessionstore.Session)
	for _, h := range hits {
		session, known := sessions[h.session]
		if !known {
			row := tx.row("SELECT "+recordColumns+" FROM "+recordTables+" WHERE key = ?", h.session)
			key, agent, r, err := scanRecord(row, parsed)
			if errors.As(err, new(*damageError)) {
				s.warnDamaged(key, plainID(r.ID), err)
				continue
			}
			if err != nil {
				return nil, err
			}
			session, session.ID, session.Agent = r, plainID(r.ID), agents[agent]
			sessions[h.session] = session
		}
		f := sessionstore.Found{Session: session}
		var (
			said int64
			body string
		)
		err := tx.row("SELECT role, said, seq, body FROM passages WHERE key = ?", h.passage).
			Scan((*string)(&f.Role), &said, &f.Segment, &body)
		if err != nil {
			return nil, err
		}
		f.Time = session.Updated
		if said != 0 {
			f.Time = rules.Time(said)
		}
		text := strings.ReplaceAll(body, string(separator), "")
		matches := q.Matches(text)
		if len(matches) == 0 { // SQLite treats other characters as letters
			matches = []sessionstore.Match{{End: len(text)}}
		}
		f.Line, f.Matches = sessionstore.BestLine(text, matches)
		all = append(all, f)
	}
	return all, nil
}
