package core

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// toTime returns a time that is stored in milliseconds.
func toTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// millis returns a time as it is stored, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// keyTexts are the columns cwd, dirs, real_cwd, real_dirs and read_only of a session.
type keyTexts [5]string

// keyColumns returns the columns of k, which must be valid, and then the hashes of all but the
// last.
func keyColumns(k sessionstore.Keys) (columns []any) {
	texts := keyTexts{
		k.Roots.Cwd().String(), listText(k.Roots.Additional().Strings()),
		k.Real[0].String(), listText(pathsOf(k.Real[1:])), listText(pathsOf(k.Roots.ReadOnly())),
	}
	for _, text := range texts {
		columns = append(columns, text)
	}
	for _, text := range texts[:4] {
		columns = append(columns, hashOf(text))
	}
	return columns
}

// hashOf returns the hash of a text in an index. It is stored, so it must not change.
func hashOf(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64())
}

// listText returns a list of paths as JSON. Lists are compared by this text.
func listText(paths []string) string { return jsonText(append([]string{}, paths...)) }

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("sessionstore: a column cannot be encoded: " + err.Error())
	}
	return string(text)
}

func pathsOf(dirs []workspace.Dir) []string {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i] = dir.String()
	}
	return paths
}

// parsedKeys caches parsed keys, since many sessions of a page have the same.
type parsedKeys map[keyTexts]sessionstore.Keys

// parse returns keys that belong to the caller.
func (p parsedKeys) parse(texts keyTexts) (sessionstore.Keys, error) {
	k, ok := p[texts]
	if !ok {
		var err error
		if k, err = parseKeys(texts); err != nil {
			return k, damaged(err)
		}
		p[texts] = k
	}
	return sessionstore.Keys{Roots: k.Roots, Real: slices.Clone(k.Real)}, nil
}

// parseKeys is the inverse of [keyColumns].
func parseKeys(texts keyTexts) (k sessionstore.Keys, err error) {
	var lists [5][]string
	for _, i := range []int{1, 3, 4} {
		if err := json.Unmarshal([]byte(texts[i]), &lists[i]); err != nil {
			return k, err
		}
	}
	dirs, real, readOnly := lists[1], lists[3], lists[4]
	if k.Roots, err = workspace.NewRoots(texts[0], dirs); err != nil {
		return k, err
	}
	k.Roots = k.Roots.ReadOnlyAt(readOnly)
	for _, path := range append([]string{texts[2]}, real...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}
