package discovery_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/discovery"
)

// Whatever is done to a tree, a rescan finds what a scan finds, and nothing else is what it returned before.
func TestA25_ARescanFindsWhatAScanFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := temporary(t)
		roots := []string{filepath.Join(top, "a"), filepath.Join(top, "b")}
		for _, root := range append(roots, filepath.Join(top, "outside")) {
			sown(t, root, filepath.Base(root))
		}
		for range rapid.IntRange(0, 4).Draw(t, "links") {
			sowLink(t, top, roots)
		}
		require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			if d.Type()&fs.ModeSymlink == 0 {
				age(t, path)
			}
			return nil
		}))
		ws := open(t, roots...)
		defer ws.Close()
		c, err := discovery.Scan(t.Context(), ws, discovery.Options{})
		require.NoError(t, err)
		for range 6 {
			disturb(t, top, roots)
			before := whole(c, top)
			var change discovery.Change
			c, change, err = c.Rescan(t.Context())
			require.NoError(t, err)
			fresh, err := discovery.Scan(t.Context(), ws, discovery.Options{})
			require.NoError(t, err)
			require.Equal(t, whole(fresh, top), whole(c, top))
			if change == discovery.Same {
				require.Equal(t, before, whole(c, top))
			}
		}
	})
}

func whole(c *discovery.Catalog, top string) string {
	return summary(c, top) + c.Instructions(discovery.EveryRoot).String()
}

// disturb changes one thing in a tree, and leaves the times of what it touched as if that had been long ago.
func disturb(t *rapid.T, top string, roots []string) {
	root := rapid.SampledFrom(roots).Draw(t, "root")
	switch rapid.SampledFrom([]string{"write", "remove", "move", "link"}).Draw(t, "do") {
	case "write":
		place := rapid.SampledFrom(places).Draw(t, "place")
		name := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "name")
		filled := strings.NewReplacer("NAME", name, "WORD", rapid.SampledFrom([]string{"former", "latter"}).Draw(t, "word"))
		path := filepath.Join(root, filled.Replace(place.path))
		if os.MkdirAll(filepath.Dir(path), 0o755) == nil && os.WriteFile(path, []byte(filled.Replace(place.text)), 0o644) == nil {
			age(t, path)
			ageDir(path)
		}
	case "remove":
		path := anyOf(t, root)
		require.NoError(t, os.RemoveAll(path))
		ageDir(path)
	case "move":
		from, to := anyOf(t, root), anyOf(t, rapid.SampledFrom(append(roots, filepath.Join(top, "outside"))).Draw(t, "to"))
		if os.Rename(from, to) == nil {
			ageDir(from)
			ageDir(to)
		}
	case "link":
		sowLink(t, top, roots)
	}
}

// sowLink makes a link in a root, to something in a root or outside of them.
func sowLink(t *rapid.T, top string, roots []string) {
	at := filepath.Join(rapid.SampledFrom(roots).Draw(t, "root"), rapid.SampledFrom(linkPaths).Draw(t, "path"))
	target := strings.NewReplacer("TOP", top).Replace(rapid.SampledFrom(linkTargets).Draw(t, "target"))
	if os.MkdirAll(filepath.Dir(at), 0o755) == nil && os.Symlink(target, at) == nil {
		ageDir(at)
	}
}

// anyOf is something in a directory, however deep; a name that is not there if it is empty.
func anyOf(t *rapid.T, root string) string {
	all := []string{filepath.Join(root, "nothing")}
	_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != root {
			all = append(all, path)
		}
		return nil
	})
	return rapid.SampledFrom(all).Draw(t, "any")
}

// ageDir makes the directory of a path look unchanged for an hour, if it is there.
func ageDir(path string) {
	dir := filepath.Dir(path)
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		_ = setAged(dir)
	}
}
