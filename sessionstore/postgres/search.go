package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Messages are indexed when their turn ends, in the same transaction. The next search indexes the
// rest: histories that were imported, restored or drafted, the end of a very long turn, and turns
// that are still running or never ended.

const (
	// maxLexeme limits the bytes of a word that are indexed: a tsvector takes no more than 2046.
	maxLexeme = 1000
	// maxPhrase limits the words of a phrase that the index is asked for: PostgreSQL handles a phrase
	// recursively.
	maxPhrase = 500
)

// index adds the passages of the next part of a session's history, which has been stored, and
// reports whether it came to the end. The caller has locked the session.
func (tx *transaction) index(r *row) (done bool, err error) {
	var after int64
	// The last passage may have been incomplete.
	err = tx.row(`
		WITH session AS (
			SELECT CASE indexed WHEN strand THEN complete ELSE 0 END AS after FROM sessions
			WHERE owner = $1 AND id = $2
		), gone AS (
			DELETE FROM passages USING session WHERE owner = $1 AND id = $2 AND seq > after
		) SELECT after FROM session`, string(r.id)).Scan(&after)
	if err != nil {
		return false, err
	}
	var p sessionstore.Passages
	last, err := tx.readPassages(r, after, &p)
	if err != nil {
		return false, err
	}
	done = last == r.last
	open := p.Open()
	p.End()
	if err := tx.addPassages(r, p.Done); err != nil {
		return false, err
	}
	complete := rules.Indexed(after, last, open, done, len(r.running) > 0)
	return done, tx.set(r.id, "indexed = strand, complete = $3, seen = $4", complete, last)
}

// readPassages adds the next part of a history to p, and returns the last segment that it read.
func (tx *transaction) readPassages(
	r *row, after int64, p *sessionstore.Passages,
) (last int64, err error) {
	last = after
	for size := 0; err == nil && size < rules.IndexBytes && last < r.last; {
		var rows pgx.Rows
		rows, err = tx.query(`
			SELECT seq, body FROM segments WHERE owner = $1 AND strand = $2 AND seq > $3
			ORDER BY seq LIMIT $4`, r.strand, last, pageSegments)
		if err != nil {
			break
		}
		var body []byte
		n := 0
		_, err = pgx.ForEachRow(rows, []any{&last, &body}, func() error {
			for u := range sessionstore.Unpack(body) {
				p.Add(last, 0, u)
			}
			size, n = size+len(body), n+1
			return nil
		})
		if err == nil && n == 0 {
			err = errMissingPart
		}
	}
	return last, err
}

// addPassages adds passages of a session.
func (tx *transaction) addPassages(r *row, passages []sessionstore.Passage) error {
	if len(passages) == 0 {
		return nil
	}
	var (
		seqs                 []int64
		roles, bodies, words []string
	)
	for _, p := range passages {
		seqs, roles = append(seqs, p.Seq), append(roles, string(p.Role))
		bodies = append(bodies, strings.ReplaceAll(p.Text, "\x00", " "))
		words = append(words, vector(tx.owner, p.Text))
	}
	return tx.exec(`
		WITH new AS MATERIALIZED (
			SELECT nextval('passage_keys') AS key, seq, role, body, words
			FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[]) AS u (seq, role, body, words)
		), added AS (
			INSERT INTO passages (owner, key, id, seq, said, role, body)
			SELECT $1, key, $2, seq, (SELECT updated FROM sessions WHERE owner = $1 AND id = $2), role, body
			FROM new
		) INSERT INTO words (owner, passage, words) SELECT $1, key, words::tsvector FROM new`,
		string(r.id), seqs, roles, bodies, words)
}

// lexemes returns how a word is indexed: with the beginning of a hash of the owner. A word has only
// letters, digits and symbols, so nothing in it needs an escape.
func lexemes(owner string) func(word string) string {
	hash := sha256.Sum256([]byte(owner))
	prefix := "'" + base64.RawURLEncoding.EncodeToString(hash[:6])
	return func(word string) string {
		return prefix + strings.ToValidUTF8(word[:min(len(word), maxLexeme)], "") + "'"
	}
}

// vector returns the words of a text and their positions, as a tsvector.
func vector(owner, text string) string {
	var b strings.Builder
	lexeme, n := lexemes(owner), 0
	for word := range sessionstore.Words(text) {
		n++
		b.WriteString(lexeme(word) + ":" + strconv.Itoa(n) + " ")
	}
	return b.String()
}

// condition returns a query's terms as a tsquery. It also matches what only begins with the first
// words of a very long phrase.
func condition(owner string, terms []sessionstore.Term) string {
	lexeme := lexemes(owner)
	var all []string
	for _, t := range terms {
		var words []string
		for word := range sessionstore.Words(t.Text) {
			if words = append(words, lexeme(word)); len(words) == maxPhrase {
				break
			}
		}
		phrase := strings.Join(words, " <-> ")
		if t.Prefix {
			phrase += ":*"
		}
		all = append(all, "("+phrase+")")
	}
	return strings.Join(all, " & ")
}

// indexRest indexes what was stored and is not indexed yet. Sessions with the latest activity come
// last, as if they had been indexed when they were stored.
func (s *Store) indexRest(ctx context.Context) error {
	var ids []string
	err := s.read(ctx, func(tx *transaction) error {
		rows, err := tx.query("SELECT id FROM sessions WHERE owner = $1 AND stale ORDER BY updated, id")
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	for _, id := range ids {
		for done := false; err == nil && !done; {
			err = s.write(ctx, func(tx *transaction) error {
				r, err := tx.find(sessionstore.ID(id), forWrite)
				if err == nil {
					done, err = tx.index(r)
				}
				return err
			})
			if errors.As(err, new(*sessionstore.NotFoundError)) {
				done, err = true, nil
			}
		}
	}
	return err
}

// Search implements [sessionstore.Searcher].
func (s *Store) Search(
	ctx context.Context, q sessionstore.SearchQuery,
) (all []sessionstore.Found, err error) {
	wanted := condition(s.owner, q.Terms())
	if wanted == "" || !utf8.ValidString(s.owner) { // which no owner of a session has
		return nil, nil
	}
	if err := s.indexRest(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx *transaction) error {
		all = nil
		_, err := tx.Exec(ctx, "SELECT set_config('acp_agent.search', $1, true)", wanted)
		if err != nil {
			return err
		}
		// The words come first: the planner knows little about how many passages have them.
		rows, err := tx.query(`
			WITH matching AS MATERIALIZED (
				SELECT owner, passage AS key FROM words WHERE owner = $1 AND words @@ $2::text::tsquery
			)
			SELECT `+recordColumns+`, p.role, p.said, p.seq, p.body FROM (
				SELECT key AS passage, row_number() OVER (PARTITION BY id ORDER BY key DESC) AS n
				FROM matching JOIN passages USING (owner, key) JOIN sessions USING (owner, id)
				WHERE indexed = strand
			) found JOIN passages p ON p.owner = $1 AND p.key = passage
				JOIN (`+recordTables+`) ON s.owner = $1 AND s.id = p.id
			WHERE n <= $3 ORDER BY passage DESC LIMIT $4`,
			wanted, sessionstore.MaxFoundInSession, q.Size())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var (
				f    sessionstore.Found
				said int64
				text string
			)
			f.Session, err = scanRecord(rows, (*string)(&f.Role), &said, &f.Segment, &text)
			if err != nil {
				return err
			}
			f.Time = rules.Time(said)
			if f.Line, f.Matches = sessionstore.BestLine(text, q.Matches(text)); len(f.Matches) > 0 {
				all = append(all, f)
			}
		}
		return rows.Err()
	})
	return all, err
}
