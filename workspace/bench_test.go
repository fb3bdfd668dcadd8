package workspace_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
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

const (
	listedFiles  = 200_000
	listedFolder = 50 // files in each directory
)

// repository creates a repository of listedFiles files four directories deep, and more that git
// ignores.
func repository(tb testing.TB) string {
	root := realDir(tb)
	write(tb, filepath.Join(root, ".git/HEAD"), "")
	write(tb, filepath.Join(root, ".gitignore"),
		"*.o\n/dist/\nnode_modules/\n*.log\n!keep.log\n**/cache/*.tmp\n")
	fill := func(top string, dir int) {
		at := mkdir(tb, filepath.Join(top,
			fmt.Sprintf("package%d/src%d/part%d", dir%20, dir/20%20, dir/400)))
		for i := range listedFolder {
			require.NoError(tb, os.WriteFile(filepath.Join(at, fmt.Sprintf("component_%02d.go", i)),
				[]byte("package x\n"), 0o644))
		}
		if dir%400 == 0 {
			write(tb, filepath.Join(at, ".gitignore"), "*.bak\n/generated\n")
		}
	}
	for dir := range listedFiles / listedFolder {
		fill(root, dir)
		if dir%10 == 0 {
			fill(filepath.Join(root, "node_modules"), dir)
		}
	}
	return root
}

// BenchmarkFiles compares listing and reading 200,000 files with two workers to ripgrep, if it is
// installed.
func BenchmarkFiles(b *testing.B) {
	root := repository(b)
	ws := open(b, root)
	b.Run("list/Workspace", func(b *testing.B) {
		for b.Loop() {
			out := &counter{}
			require.NoError(b, list(b, ws, out))
			require.Equal(b, listedFiles, out.lines)
		}
	})
	b.Run("list/rg", func(b *testing.B) {
		ripgrep(b, root, listedFiles, "--files", "--threads", "2")
	})
	b.Run("read/Workspace", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, readAll(b, ws, []byte("unheard")))
		}
	})
	b.Run("read/rg", func(b *testing.B) {
		ripgrep(b, root, 0, "--threads", "2", "unheard")
	})
}

// ripgrep runs rg in a directory, and requires that it prints this many lines.
func ripgrep(b *testing.B, dir string, lines int, args ...string) {
	if _, err := exec.LookPath("rg"); err != nil {
		b.Skip("ripgrep is not installed:", err)
	}
	for b.Loop() {
		out := &counter{}
		rg := exec.Command("rg", args...)
		rg.Dir, rg.Stdout = dir, out
		err := rg.Run()
		require.True(b, err == nil || lines == 0 && rg.ProcessState.ExitCode() == 1, "%v", err)
		require.Equal(b, lines, out.lines)
	}
}

// ofGit visits the files that git does not ignore.
var ofGit = workspace.WalkOptions{Ignored: workspace.LeaveIgnored}.WithWorkers(2)

// readAll reads each file, which must not contain word.
func readAll(tb testing.TB, ws *workspace.Workspace, word []byte) error {
	return ws.Walk(tb.Context(), ".", ofGit, func(f *workspace.Folder) func() error {
		var failure error
		buf := make([]byte, 64<<10)
		for _, e := range f.Entries {
			if !e.Type.IsRegular() || e.Name[0] == '.' { // like rg
				continue
			}
			file, err := f.Open(e)
			if err != nil {
				failure = err
				break
			}
			n, err := file.Read(buf)
			if err != nil || bytes.Contains(buf[:n], word) {
				failure = fmt.Errorf("%s: %d bytes, %v", e.Name, n, err)
			}
			_ = file.Close()
		}
		return func() error { return failure }
	})
}

// list writes the path of each file, in order, with two workers.
func list(tb testing.TB, ws *workspace.Workspace, out io.Writer) error {
	return ws.Walk(tb.Context(), ".", ofGit, func(f *workspace.Folder) func() error {
		if f.Err != nil {
			return func() error { return f.Err }
		}
		var lines []byte
		for _, e := range f.Entries {
			if e.Type.IsRegular() && e.Name[0] != '.' {
				lines = append(append(append(append(lines, f.Ref().Rel()...), '/'), e.Name...),
					'\n')
			}
		}
		return func() error {
			_, err := out.Write(lines)
			return err
		}
	})
}

// counter counts lines.
type counter struct{ lines int }

func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}
