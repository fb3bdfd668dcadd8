package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/acp-agent/acp-agent/workspace"
)

// A scan looks at several folders at once, and delivers what it found in order.
func ExampleWorkspace_Scan() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, path := range []string{"main.go", "main.o", "lib/a.go", "lib/b.go", "out/a.go"} {
		_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755)
		_ = os.WriteFile(filepath.Join(dir, path), nil, 0o644)
	}
	_ = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\n/out/\n"), 0o644)

	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		panic(err)
	}
	ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		panic(err)
	}
	defer ws.Close()
	o := workspace.ScanOptions{Ignored: workspace.LeaveIgnored}
	err = ws.Scan(context.Background(), ".", o, func(f *workspace.Folder) func() error {
		var found []string
		for _, e := range f.Entries {
			if e.Type.IsRegular() {
				found = append(found, f.RefOf(e).Rel())
			}
		}
		return func() error {
			fmt.Println(f.Ref().Rel(), found)
			return f.Err
		}
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// . [.gitignore main.go]
	// lib [lib/a.go lib/b.go]
}
