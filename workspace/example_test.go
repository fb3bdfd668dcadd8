package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/spf13/afero"
)

func ExampleNewRoots() {
	roots, err := workspace.NewRoots("/src/app/",
		[]string{"/src/lib", "/src/app", "/src/./lib", "/docs"})
	fmt.Println(roots, err)

	_, err = workspace.NewRoots("app", []string{"/src/lib", ""})
	var problems workspace.RootErrors
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Println(p)
		}
	}
	// Output:
	// [/src/app, /src/lib, /docs] <nil>
	// folder 0 "app" is not absolute: give an absolute path
	// folder 2 "" is empty: give an absolute path
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	app, lib := filepath.Join(dir, "app"), filepath.Join(dir, "lib")
	_ = os.Mkdir(app, 0o755)
	_ = os.Mkdir(lib, 0o755)
	_ = os.WriteFile(filepath.Join(lib, "hello.txt"), []byte("hello\n"), 0o644)
	_ = os.Symlink("../lib/hello.txt", filepath.Join(app, "greeting"))
	_ = os.Symlink("/etc/passwd", filepath.Join(app, "passwords"))

	roots, err := workspace.NewRoots(app, []string{lib})
	if err != nil {
		panic(err)
	}
	ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		panic(err)
	}
	defer ws.Close()

	f, err := ws.Open("greeting") // a link from one root to another
	if err != nil {
		panic(err)
	}
	defer f.Close()
	text, _ := io.ReadAll(f)
	fmt.Printf("%s in root %d: %s", f.Ref().Rel(), f.Ref().Root().Index, text)

	_, err = ws.Open("passwords")
	var outside *workspace.OutsideError
	fmt.Println("outside:", errors.As(err, &outside))
	// Output:
	// hello.txt in root 1: hello
	// outside: true
}

// newFolder makes a folder for an example, which removes it.
func newFolder() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	return dir
}

// openFolder opens a workspace of one folder, as ExampleOpen shows.
func openFolder(dir string) *workspace.Workspace {
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		panic(err)
	}
	ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		panic(err)
	}
	return ws
}

func ExampleWorkspace_WriteFile() {
	dir := newFolder()
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o644)
	_ = os.Symlink("hello.txt", filepath.Join(dir, "greeting"))

	ctx := context.Background()
	ws := openFolder(dir)
	defer ws.Close()

	// What is shown to somebody who decides about it is what is written, or nothing is.
	where, err := ws.WriteTarget("greeting")
	if err != nil {
		panic(err)
	}
	fmt.Println("writes", where.Rel())
	shown := workspace.WriteOptions{At: where, IfUnchanged: workspace.VersionOf([]byte("hello\n"))}
	_, err = ws.WriteFile(ctx, "greeting", []byte("good morning\n"), shown)
	fmt.Println("first:", err)

	_, err = ws.WriteFile(ctx, "greeting", []byte("good night\n"), shown)
	var changed *workspace.ChangedError
	fmt.Println("second:", errors.As(err, &changed))
	// Output:
	// writes hello.txt
	// first: <nil>
	// second: true
}

// A walk looks at several folders at once, and delivers what it found in order.
func ExampleWorkspace_Walk() {
	dir := newFolder()
	defer os.RemoveAll(dir)
	for _, path := range []string{"main.go", "main.o", "lib/a.go", "lib/b.go", "out/a.go"} {
		_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755)
		_ = os.WriteFile(filepath.Join(dir, path), nil, 0o644)
	}
	_ = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\n/out/\n"), 0o644)

	ws := openFolder(dir)
	defer ws.Close()
	o := workspace.WalkOptions{LeaveIgnored: true}
	err := ws.Walk(context.Background(), ".", o, func(f *workspace.Folder) func() error {
		var found []string
		for _, e := range f.Entries {
			if e.Type.IsRegular() {
				found = append(found, path.Join(f.Ref().Rel(), e.Name))
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

func ExampleWorkspace_Fs() {
	dir := newFolder()
	defer os.RemoveAll(dir)
	ws := openFolder(dir)
	defer ws.Close()

	fsys := ws.Fs() // an afero.Fs
	fmt.Println(afero.WriteFile(fsys, "notes.txt", []byte("buy milk\n"), 0o644))
	text, err := afero.ReadFile(fsys, "notes.txt")
	fmt.Printf("%q %v\n", text, err)
	fmt.Println(fsys.Remove("notes.txt"))
	// Output:
	// <nil>
	// "buy milk\n" <nil>
	// remove notes.txt: permission denied
}

func ExampleWorkspace_ReadText() {
	dir := newFolder()
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "poem.txt"), []byte("roses\nviolets\nsugar\nyou\n"), 0o644)
	ctx := context.Background()
	ws := openFolder(dir)
	defer ws.Close()

	text, err := ws.ReadText(ctx, "poem.txt", workspace.TextOptions{First: 2, MaxLines: 2})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q, %d lines in all, cut by %s, more from line %d\n", text.Content, text.Total,
		text.Cut, text.Next())
	// Output: "violets\nsugar\n", 4 lines in all, cut by lines, more from line 4
}
