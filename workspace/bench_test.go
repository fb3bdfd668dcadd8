package workspace_test

import (
	"errors"
	"fmt"
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

// BenchmarkReadDepth6 compares opening and reading with the same by an os.Root alone.
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

// slurp reads a file as os.Root.ReadFile does: into one piece of memory of its size, and on to its end.
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

// tree makes 20,000 files in 1,111 directories.
func tree(tb testing.TB) string {
	root := realDir(tb)
	for i := range 20_000 {
		path := filepath.Join(root, fmt.Sprintf("%d/%02d/%02d", i%10, i/10%10, i/100%10), fmt.Sprintf("file%05d.go", i))
		if i < 1000 {
			require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		}
		require.NoError(tb, os.WriteFile(path, []byte("package x\n"), 0o644))
	}
	return root
}

func BenchmarkWalk(b *testing.B) {
	root := tree(b)
	ws := open(b, root)
	b.Run("filepath.WalkDir", func(b *testing.B) {
		for b.Loop() {
			files := 0
			require.NoError(b, filepath.WalkDir(root, func(_ string, d os.DirEntry, err error) error {
				if d.Type().IsRegular() {
					files++
				}
				return err
			}))
			require.Equal(b, 20_000, files)
		}
	})
	b.Run("Walk", func(b *testing.B) {
		for b.Loop() {
			files := 0
			require.NoError(b, ws.Walk(b.Context(), ".", func(v workspace.Visit) error {
				if v.Type.IsRegular() {
					files++
				}
				return v.Err
			}))
			require.Equal(b, 20_000, files)
		}
	})
	b.Run("Walk_and_read", func(b *testing.B) {
		buf := make([]byte, 64)
		for b.Loop() {
			require.NoError(b, ws.Walk(b.Context(), ".", func(v workspace.Visit) error {
				if !v.Type.IsRegular() {
					return v.Err
				}
				f, err := v.Open()
				if err != nil {
					return err
				}
				_, err = f.Read(buf)
				return errors.Join(err, f.Close())
			}))
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d_roots", n), func(b *testing.B) {
			dirs := make([]string, n)
			for i := range dirs {
				dirs[i] = realDir(b)
			}
			roots, err := workspace.NewRoots(dirs[0], dirs[1:])
			require.NoError(b, err)
			for b.Loop() {
				ws, err := workspace.Open(b.Context(), roots, workspace.Options{})
				require.NoError(b, err)
				require.NoError(b, ws.Close())
			}
		})
	}
}
