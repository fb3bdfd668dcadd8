//go:build unix

package tools

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory is swapped with a link to the outside while every tool works in it.
//
// Clause C5.
func TestDirectorySwappedWithALink(t *testing.T) {
	top, h := twoRoots(t)
	inside, link := filepath.Join(top, "app/d"), filepath.Join(top, "app/e")
	require.NoError(t, os.Mkdir(inside, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(inside, "secret"), []byte("fine\n"), 0o600))
	symlink(t, filepath.Join(top, "out"), link)

	outside := planted(t, filepath.Join(top, "out"))
	const calls = 60
	var stop atomic.Bool
	var swapper sync.WaitGroup
	swapper.Go(func() {
		spare := filepath.Join(top, "app/spare")
		for !stop.Load() {
			_ = os.Rename(inside, spare)
			_ = os.Rename(link, inside)
			_ = os.Rename(spare, link)
		}
	})
	defer swapper.Wait()
	defer stop.Store(true)
	for range calls {
		for label, call := range pathCalls {
			path := "d/secret"
			if label == "list_directory" || label == "directory_tree" {
				path = "d"
			}
			tool, a := call(path)
			result, err := h.set.Call(t.Context(), tool, encode(a))
			if err != nil {
				continue
			}
			require.NotContains(t, result.Text, filepath.Join(top, "out"), label)
			if label == "read_file" {
				require.Regexp(t, "^[^\n]+\n(fine|intruder)\n$", result.Text)
			}
		}
		for _, a := range []struct {
			tool string
			args args
		}{
			{"create_directory", args{"path": "d/new"}}, {"move_file",
				args{"path": "d/new", "to": "d/moved"}},
			{"move_file", args{"path": "d/secret", "to": "moved"}}, {"move_file",
				args{"path": "moved", "to": "d/secret"}},
			{"delete_file", args{"path": "d/new"}}, {"delete_file",
				args{"path": "d/moved"}}, {"delete_file", args{"path": "d/sub"}},
		} {
			_, _ = h.set.Call(t.Context(), a.tool, encode(a.args))
		}
		require.Equal(t, outside, planted(t, filepath.Join(top, "out")))
		require.NoDirExists(t, filepath.Join(top, "out/new"))
		require.NoDirExists(t, filepath.Join(top, "out/moved"))
	}
}
