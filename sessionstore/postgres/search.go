package postgres

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

const (
	// maxLexeme limits the bytes of a word that are indexed: a tsvector takes no more than 2046.
	maxLexeme = 1000
	// maxPhrase limits the words of a phrase that the index is asked for: PostgreSQL handles a
	// phrase recursively.
	maxPhrase = 500
)

const addPassage = `
	WITH added AS (
		INSERT INTO passages (owner, strand, seq, said, role, body) VALUES ($1, $2, $3, $4, $5, $6)
		RETURNING key
	) INSERT INTO words (owner, passage, words) SELECT $1, key, $7::text::tsvector FROM added`

// Indexed implements [core.Database].
func (d *database) Indexed(owner, text string) []any {
	return []any{strings.ReplaceAll(text, "\x00", " "), vector(owner, text)}
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

// FindPassages implements [core.Database].
func (d *database) FindPassages(
	tx core.Tx, owner string, terms []sessionstore.Term, limit int,
) (keys []int64, err error) {
	wanted := condition(owner, terms)
	err = tx.Exec("SELECT set_config('acp_agent.search', $1, true)", []any{wanted})
	if err != nil {
		return nil, err
	}
	// The words come first: the planner knows little about how many passages have them.
	found, err := tx.Query(`
		WITH matching AS MATERIALIZED (
			SELECT passage AS key FROM words WHERE owner = $1 AND words @@ $2::text::tsquery
		)
		SELECT passage FROM (
			SELECT p.key AS passage, row_number() OVER (PARTITION BY s.key ORDER BY p.key DESC) AS n
			FROM matching JOIN passages p ON p.owner = $1 AND p.key = matching.key
			JOIN sessions s ON s.owner = $1 AND s.strand = p.strand
		) found WHERE n <= $3 ORDER BY passage DESC LIMIT $4`,
		owner, wanted, sessionstore.MaxFoundInSession, limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for err == nil && found.Next() {
		var key int64
		err = found.Scan(&key)
		keys = append(keys, key)
	}
	return keys, cmp.Or(err, found.Err())
}
