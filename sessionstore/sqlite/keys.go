package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// keyColumns are the columns of a session's keys.
type keyColumns struct {
	cwd, dirs, realCwd, realDirs column
}

// column is a value that sessions are found by. The indexes contain its hash.
type column struct {
	text string
	hash int64
}

// columnsOf returns the columns of k, which must be valid.
func columnsOf(k sessionstore.Keys) keyColumns {
	return keyColumns{
		cwd:      dirColumn(k.Roots.Cwd()),
		dirs:     dirsColumn(k.Roots.Additional()),
		realCwd:  dirColumn(k.Real[0]),
		realDirs: realColumn(k.Real[1:]),
	}
}

// values returns the columns in the order cwd, dirs, real_cwd, real_dirs, then their hashes.
func (k keyColumns) values() []any {
	return []any{
		k.cwd.text, k.dirs.text, k.realCwd.text, k.realDirs.text,
		k.cwd.hash, k.dirs.hash, k.realCwd.hash, k.realDirs.hash,
	}
}

// columnOf returns the column of a text. The hash is stored, so it must not change.
func columnOf(text string) column {
	h := fnv.New64a()
	h.Write([]byte(text))
	return column{text, int64(h.Sum64())}
}

func dirColumn(dir workspace.Dir) column { return columnOf(dir.String()) }

func dirsColumn(list workspace.Dirs) column { return listColumn(list.Strings()) }

func realColumn(list []workspace.Dir) column {
	paths := make([]string, len(list))
	for i, dir := range list {
		paths[i] = dir.String()
	}
	return listColumn(paths)
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

// parseKeys is the inverse of [columnsOf].
func parseKeys(texts keyTexts) (sessionstore.Keys, error) {
	var k sessionstore.Keys
	cwd, err := workspace.ParseDir(texts[0])
	if err != nil {
		return k, err
	}
	var paths, realPaths []string
	if err := json.Unmarshal([]byte(texts[1]), &paths); err != nil {
		return k, err
	}
	if err := json.Unmarshal([]byte(texts[3]), &realPaths); err != nil {
		return k, err
	}
	additional, err := workspace.ParseDirs(paths)
	if err != nil {
		return k, err
	}
	k.Roots = workspace.RootsFrom(cwd, additional)
	k.Real = make([]workspace.Dir, 0, 1+len(realPaths))
	for _, path := range append([]string{texts[2]}, realPaths...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}
