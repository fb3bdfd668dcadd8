package gitignore_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

// The caller reads the files; the matchers of nested directories inherit.
func Example() {
	top := gitignore.NewMatcher(gitignore.Parse([]byte("*.log\n/build/\n")))
	logs := top.Enter("logs", gitignore.Parse([]byte("!keep.log\n")))

	fmt.Println(top.Ignores("build", true))
	fmt.Println(top.Ignores("main.go", false))
	fmt.Println(logs.Ignores("old.log", false))
	fmt.Println(logs.Ignores("keep.log", false))
	// Output:
	// true
	// false
	// true
	// false
}
