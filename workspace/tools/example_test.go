package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// A host offers the tools and decides about each change.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\nworld\n"), 0o644)

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

	set := tools.New(ws, tools.Options{Permit: func(_ context.Context, c tools.Change) error {
		fmt.Println("permitted: a change of", c.Ref.Rel(), "from line", c.FirstLine())
		return nil
	}})
	_, err = set.Call(ctx, "edit_file", json.RawMessage(
		`{"path":"hello.txt","old_text":"world","new_text":"reader"}`))
	fmt.Println("edit:", err)

	result, err := set.Call(ctx, "read_file", json.RawMessage(`{"path":"hello.txt"}`))
	_, content, _ := strings.Cut(result.Text, "\n") // the first line names the file
	fmt.Println("read:", err)
	fmt.Print(content)

	_, err = set.Call(ctx, "read_file", json.RawMessage(`{"file":"hello.txt"}`))
	fmt.Println(err)
	// Output:
	// permitted: a change of hello.txt from line 2
	// edit: <nil>
	// read: <nil>
	// hello
	// reader
	// invalid arguments for read_file: path is missing: it must be a string that is not empty; there is no argument "file" (available: limit, line_offset, offset, path, tail)
}
