package sqlite

import (
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

const addPassage = "INSERT INTO passages (owner, strand, seq, said, role, body) " +
	"VALUES ($1, $2, $3, $4, $5, $6)"

// Indexed implements [core.Database].
func (f *file) Indexed(_, text string) []any { return []any{separated(text)} }

// separated returns a text as it is indexed: characters that are words by themselves are
// separated.
func separated(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	alone := false
	for i, r := range text {
		if r <= core.Separator {
			r = ' '
		}
		before := alone
		alone = sessionstore.IsAlone(r)
		if i > 0 && (before || alone) {
			b.WriteRune(core.Separator)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// FindPassages implements [core.Database].
func (f *file) FindPassages(
	tx core.Tx, owner string, terms []sessionstore.Term, limit int,
) (keys []int64, err error) {
	rows, err := tx.Query(`
		SELECT words.rowid, sessions.key
		FROM words CROSS JOIN passages ON passages.key = words.rowid AND passages.owner = $1
		CROSS JOIN sessions ON sessions.owner = $1 AND sessions.strand = passages.strand
		WHERE words MATCH $2 ORDER BY words.rowid DESC`, owner, matchExpression(terms))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	in := make(map[int64]int)
	for len(keys) < limit && rows.Next() {
		var key, session int64
		if err := rows.Scan(&key, &session); err != nil {
			return nil, err
		}
		if in[session]++; in[session] <= sessionstore.MaxFoundInSession {
			keys = append(keys, key)
		}
	}
	return keys, rows.Err()
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
