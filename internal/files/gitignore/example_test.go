package gitignore_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

// The caller reads the files; the matchers of nested directories inherit.
func Example() {
	top := gitignore.NewMatcher(gitignore.Parse([]byte("*.log\n/build/\n")))
	logs := top.Enter("logs", gitignore.Parse([]byte("!keep.log\n")))

	fmt.Println(top.Match("build", gitignore.Directory) == gitignore.Ignored)
	fmt.Println(top.Match("main.go", gitignore.File) == gitignore.Ignored)
	fmt.Println(logs.Match("old.log", gitignore.File) == gitignore.Ignored)
	fmt.Println(logs.Match("keep.log", gitignore.File) == gitignore.Ignored)
	// Output:
	// true
	// false
	// true
	// false
}
