//go:build linux || darwin

package containmenttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfine(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	file, dir, link := filepath.Join(out, "file"), filepath.Join(out, "dir"), filepath.Join(in, "link")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Symlink(out, link))
	outside := map[string]func() error{
		"make a file":          func() error { return os.WriteFile(filepath.Join(out, "new"), nil, 0o600) },
		"make a directory":     func() error { return os.Mkdir(filepath.Join(out, "new"), 0o700) },
		"make a link":          func() error { return os.Symlink("file", filepath.Join(out, "new")) },
		"make a hard link":     func() error { return os.Link(filepath.Join(in, "own"), filepath.Join(out, "new")) },
		"write":                func() error { return os.WriteFile(file, nil, 0o600) },
		"write through a link": func() error { return os.WriteFile(filepath.Join(link, "file"), nil, 0o600) },
		"truncate":             func() error { return os.Truncate(file, 0) },
		"rename":               func() error { return os.Rename(file, filepath.Join(out, "new")) },
		"move away":            func() error { return os.Rename(file, filepath.Join(in, "new")) },
		"move there":           func() error { return os.Rename(filepath.Join(in, "own"), filepath.Join(out, "new")) },
		"remove a file":        func() error { return os.Remove(file) },
		"remove a directory":   func() error { return os.Remove(dir) },
		"remove all":           func() error { return os.RemoveAll(out) },
		"remove where it may":  func() error { return os.RemoveAll(in) },
	}
	type attempt struct {
		held bool
		own  error
		errs map[string]error
	}
	done := make(chan attempt)
	go func() {
		a := attempt{held: containmenttest.Confine(in), errs: map[string]error{}}
		if a.held {
			a.own = os.WriteFile(filepath.Join(in, "own"), []byte("text"), 0o600)
			for name, it := range outside {
				a.errs[name] = it()
			}
		}
		done <- a
	}()
	a := <-done
	if !a.held {
		t.Skip("this system cannot confine")
	}
	require.NoError(t, a.own)
	for name, err := range a.errs {
		require.Error(t, err, name)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	require.DirExists(t, dir)
	require.NoFileExists(t, filepath.Join(out, "new"))
	require.NoError(t, os.WriteFile(file, nil, 0o600), "others are not confined")
}
