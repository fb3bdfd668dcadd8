package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/acp-agent/acp-agent/workspace"
)

func ExampleWorkspace_ReadText() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "poem.txt"), []byte("roses\nviolets\nsugar\nyou\n"), 0o644)

	ctx := context.Background()
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		panic(err)
	}
	ws, err := workspace.Open(ctx, roots, workspace.Options{})
	if err != nil {
		panic(err)
	}
	defer ws.Close()

	text, err := ws.ReadText(ctx, "poem.txt", workspace.TextOptions{First: 2, MaxLines: 2})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q, %d lines in all, cut by %s, more from line %d\n", text.Content, text.Total, text.Cut, text.Next())

	_, err = ws.MkdirAll("old/poems", 0o755)
	fmt.Println(err)
	ref, err := ws.Rename(ctx, "poem.txt", "old/poems/poem.txt", workspace.RenameOptions{Create: workspace.CreateOnly})
	fmt.Println(ref.Rel(), err)
	fmt.Println(ws.RemoveAll(ctx, ".", workspace.RemoveOptions{}) != nil) // a root stays
	// Output:
	// "violets\nsugar\n", 4 lines in all, cut by lines, more from line 4
	// <nil>
	// old/poems/poem.txt <nil>
	// true
}
