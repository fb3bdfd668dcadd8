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

func BenchmarkListFiles(b *testing.B) {
	root := repository(b)
	ws := open(b, root)
	b.Run("Scan", func(b *testing.B) {
		for b.Loop() {
			out := &counter{}
			require.NoError(b, list(b, ws, out))
			require.Equal(b, listedFiles, out.lines)
		}
	})
	b.Run("rg", func(b *testing.B) {
		if _, err := exec.LookPath("rg"); err != nil {
			b.Skip("ripgrep is not installed:", err)
		}
		for b.Loop() {
			out := &counter{}
			rg := exec.Command("rg", "--files", "--threads", "2")
			rg.Dir, rg.Stdout = root, out
			require.NoError(b, rg.Run())
			require.Equal(b, listedFiles, out.lines)
		}
	})
}

// list writes the path of each file, in order, with two workers.
func list(tb testing.TB, ws *workspace.Workspace, out io.Writer) error {
	o := workspace.ScanOptions{Workers: 2, Ignored: workspace.LeaveIgnored, Leave: func(_ workspace.Ref, e workspace.Entry) bool {
		return e.Name[0] == '.'
	}}
	return ws.Scan(tb.Context(), ".", o, func(f *workspace.Folder) func() error {
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
