package core

import (
	"encoding/json"
	"errors"
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

// unsigned returns what the column listed says: a session that is gone has a negative number.
func unsigned(column int64) (listed int64, gone bool) { return max(column, -column), column < 0 }

// keyTexts are [sessionstore.Keys] as they are stored.
type keyTexts struct{ cwd, dirs, realCwd, realDirs, readOnly string }

// textsOf returns valid keys as they are stored.
func textsOf(k sessionstore.Keys) keyTexts {
	return keyTexts{
		cwd:      k.Roots.Cwd().String(),
		dirs:     listText(k.Roots.Additional().Strings()),
		realCwd:  k.Real[0].String(),
		realDirs: listText(pathsOf(k.Real[1:])),
		readOnly: listText(pathsOf(k.Roots.ReadOnly())),
	}
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

// parseKeys is the inverse of [textsOf].
func parseKeys(texts keyTexts) (k sessionstore.Keys, err error) {
	var dirs, real, readOnly []string
	err = errors.Join(json.Unmarshal([]byte(texts.dirs), &dirs),
		json.Unmarshal([]byte(texts.realDirs), &real),
		json.Unmarshal([]byte(texts.readOnly), &readOnly))
	if err != nil {
		return k, err
	}
	if k.Roots, err = workspace.NewRoots(texts.cwd, dirs); err != nil {
		return k, err
	}
	k.Roots = k.Roots.ReadOnlyAt(readOnly)
	for _, path := range append([]string{texts.realCwd}, real...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}
