//go:build linux || darwin

package containmenttest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Picture is everything below dir but for some directories in it: which file it is, its mode, its time and its
// content, by its path in dir. Pictures compare with [maps.Equal].
func Picture(t testing.TB, dir string, but []string) map[string]string {
	t.Helper()
	seen := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		if err != nil && d == nil || relErr != nil {
			return fmt.Errorf("looking at %s: %w", path, err)
		}
		if slices.Contains(but, rel) {
			return fs.SkipDir
		}
		info, infoErr := d.Info()
		if infoErr != nil {
			return infoErr
		}
		what := fmt.Sprint(inode(info), info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			seen[rel] = what + " -> " + target
			return err
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(path) // what may not be read is not compared
			what += " " + string(text)
		}
		seen[rel] = what
		return nil
	}))
	return seen
}

func inode(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ino
}
