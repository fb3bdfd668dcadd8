package workspace_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// deepFile makes a file of 4 KiB six directories below a new root.
func deepFile(tb testing.TB) (root, rel string) {
	root = realDir(tb)
	rel = "a/b/c/d/e/file"
	write(tb, filepath.Join(root, rel), string(make([]byte, 4096)))
	return root, rel
}

// BenchmarkReadDepth6 compares opening and reading a file with a plain os.Root.
func BenchmarkReadDepth6(b *testing.B) {
	root, rel := deepFile(b)
	other := realDir(b)
	link(b, filepath.Join(root, "a"), filepath.Join(root, "in"))
	link(b, filepath.Join(root, "a/b"), filepath.Join(other, "across"))
	ws := open(b, root, other)

	b.Run("os.Root", func(b *testing.B) {
		plain, err := os.OpenRoot(root)
		require.NoError(b, err)
		defer plain.Close()
		for b.Loop() {
			_, err := plain.ReadFile(rel)
			require.NoError(b, err)
		}
	})
	for name, path := range map[string]string{
		"relative":    rel,
		"absolute":    filepath.Join(root, rel),
		"link_inside": filepath.Join(root, "in/b/c/d/e/file"),
		"link_across": filepath.Join(other, "across/c/d/e/file"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, err := ws.Open(path)
				require.NoError(b, err)
				_, err = slurp(f)
				require.NoError(b, err)
				require.NoError(b, f.Close())
			}
		})
	}
}

// slurp reads a file as os.Root.ReadFile does: into one buffer of its size.
func slurp(f *workspace.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, info.Size()+512)
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return text, err
		}
	}
}
