package sqlite

import (
	"encoding/json"
	"hash/fnv"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// column is a value that sessions are found by, with its hash, which is what the indexes hold.
type column struct {
	text string
	hash int64
}

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

// listColumn is the one text of a list: stored lists are compared by their text.
func listColumn(paths []string) column {
	text, err := json.Marshal(paths)
	if err != nil {
		panic("sqlite: strings do not encode: " + err.Error())
	}
	return columnOf(string(text))
}

// keyColumns are the columns of a session's keys.
type keyColumns struct {
	cwd, dirs, realCwd, realDirs column
}

func columnsOf(k sessionstore.Keys) keyColumns {
	return keyColumns{
		cwd:      dirColumn(k.Roots.Cwd()),
		dirs:     dirsColumn(k.Roots.Additional()),
		realCwd:  dirColumn(k.Real[0]),
		realDirs: realColumn(k.Real[1:]),
	}
}

// values are in the order of the schema.
func (k keyColumns) values() []any {
	return []any{
		k.cwd.text, k.dirs.text, k.realCwd.text, k.realDirs.text,
		k.cwd.hash, k.dirs.hash, k.realCwd.hash, k.realDirs.hash,
	}
}

// keyTexts are keyColumns as they are read: cwd, dirs, real_cwd, real_dirs.
type keyTexts [4]string

// knownKeys are keys that were parsed before. A page's sessions often have the same.
type knownKeys map[keyTexts]sessionstore.Keys

// parse returns keys of the caller's own.
func (known knownKeys) parse(texts keyTexts) (sessionstore.Keys, error) {
	k, ok := known[texts]
	if !ok {
		var err error
		if k, err = parseKeys(texts[0], texts[1], texts[2], texts[3]); err != nil {
			return k, &damageError{err}
		}
		known[texts] = k
	}
	return sessionstore.Keys{Roots: k.Roots, Real: slices.Clone(k.Real)}, nil
}

// parseKeys reads what values wrote.
func parseKeys(cwd, dirs, realCwd, realDirs string) (sessionstore.Keys, error) {
	var k sessionstore.Keys
	first, err := workspace.ParseDir(cwd)
	if err != nil {
		return k, err
	}
	var paths, realPaths []string
	if err := json.Unmarshal([]byte(dirs), &paths); err != nil {
		return k, err
	}
	if err := json.Unmarshal([]byte(realDirs), &realPaths); err != nil {
		return k, err
	}
	rest, err := workspace.ParseDirs(paths)
	if err != nil {
		return k, err
	}
	k.Roots = workspace.RootsFrom(first, rest)
	k.Real = make([]workspace.Dir, 0, 1+len(realPaths))
	for _, path := range append([]string{realCwd}, realPaths...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}
