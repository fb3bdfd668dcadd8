package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// column is a value that sessions are found by. The indexes contain its hash.
type column struct {
	text string
	hash int64
}

// keyValues returns the columns cwd, dirs, real_cwd and real_dirs of k, which must be valid, and
// then their hashes.
func keyValues(k sessionstore.Keys) (values []any) {
	p := rules.PathsOf(k)
	columns := []column{
		columnOf(p.Cwd), listColumn(p.Dirs), columnOf(p.RealCwd), listColumn(p.RealDirs),
	}
	for _, c := range columns {
		values = append(values, c.text)
	}
	for _, c := range columns {
		values = append(values, c.hash)
	}
	return values
}

// columnOf returns the column of a text. The hash is stored, so it must not change.
func columnOf(text string) column {
	h := fnv.New64a()
	h.Write([]byte(text))
	return column{text, int64(h.Sum64())}
}

// listColumn returns the column of a list, as JSON. Lists are compared by this text.
func listColumn(paths []string) column {
	return columnOf(asJSON(paths))
}

// asJSON encodes a list of strings or numbers.
func asJSON(list any) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic("sqlite: a list cannot be encoded: " + err.Error())
	}
	return string(text)
}

// asHex encodes texts that JSON cannot hold.
func asHex[T ~string](texts []T) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = hex.EncodeToString([]byte(text))
	}
	return out
}

// keyTexts are the columns cwd, dirs, real_cwd and real_dirs of a session.
type keyTexts [4]string

// parsedKeys caches parsed keys, since many sessions of a page have the same.
type parsedKeys map[keyTexts]sessionstore.Keys

// parse returns keys that belong to the caller.
func (p parsedKeys) parse(texts keyTexts) (sessionstore.Keys, error) {
	k, ok := p[texts]
	if !ok {
		var err error
		if k, err = parseKeys(texts); err != nil {
			return k, &damageError{err}
		}
		p[texts] = k
	}
	return sessionstore.Keys{Roots: k.Roots, Real: slices.Clone(k.Real)}, nil
}

// parseKeys is the inverse of [keyValues].
func parseKeys(texts keyTexts) (k sessionstore.Keys, err error) {
	p := rules.Paths{Cwd: texts[0], RealCwd: texts[2]}
	if err := json.Unmarshal([]byte(texts[1]), &p.Dirs); err != nil {
		return k, err
	}
	if err := json.Unmarshal([]byte(texts[3]), &p.RealDirs); err != nil {
		return k, err
	}
	return p.Keys()
}
