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

const (
	listedFiles  = 200_000
	listedFolder = 50 // files in each directory
)

// repository makes a repository of listedFiles files four directories deep, and as many again in places that
// git ignores.
func repository(tb testing.TB) string {
	root := realDir(tb)
	write(tb, filepath.Join(root, ".git/HEAD"), "")
	write(tb, filepath.Join(root, ".gitignore"), "*.o\n/dist/\nnode_modules/\n*.log\n!keep.log\n**/cache/*.tmp\n")
	fill := func(top string, dir int) {
		at := mkdir(tb, filepath.Join(top, fmt.Sprintf("package%d/src%d/part%d", dir%20, dir/20%20, dir/400)))
		for i := range listedFolder {
			require.NoError(tb, os.WriteFile(filepath.Join(at, fmt.Sprintf("component_%02d.go", i)), []byte("package x\n"), 0o644))
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

// BenchmarkFiles lists and reads 200,000 files with two workers, and has ripgrep do the same where it is installed.
func BenchmarkFiles(b *testing.B) {
	root := repository(b)
	ws := open(b, root)
	b.Run("list/Scan", func(b *testing.B) {
		for b.Loop() {
			out := &counter{}
			require.NoError(b, list(b, ws, out))
			require.Equal(b, listedFiles, out.lines)
		}
	})
	b.Run("list/rg", func(b *testing.B) {
		ripgrep(b, root, listedFiles, "--files", "--threads", "2")
	})
	b.Run("read/Scan", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, readAll(b, ws, []byte("unheard")))
		}
	})
	b.Run("read/rg", func(b *testing.B) {
		ripgrep(b, root, 0, "--threads", "2", "unheard")
	})
}

// ripgrep runs rg in a directory, and requires that it prints so many lines.
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

// ofGit are what rg looks at: no hidden files, and none that git ignores.
var ofGit = workspace.ScanOptions{Workers: 2, Ignored: workspace.LeaveIgnored, Leave: func(_ workspace.Ref, e workspace.Entry) bool {
	return e.Name[0] == '.'
}}

// readAll reads each file, which must not contain word.
func readAll(tb testing.TB, ws *workspace.Workspace, word []byte) error {
	return ws.Scan(tb.Context(), ".", ofGit, func(f *workspace.Folder) func() error {
		var failure error
		buf := make([]byte, 64<<10)
		for _, e := range f.Entries {
			if !e.Type.IsRegular() {
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
	return ws.Scan(tb.Context(), ".", ofGit, func(f *workspace.Folder) func() error {
		if f.Err != nil {
			return func() error { return f.Err }
		}
		var lines []byte
		for _, e := range f.Entries {
			if e.Type.IsRegular() {
				lines = append(append(append(append(lines, f.Ref().Rel()...), '/'), e.Name...), '\n')
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
