package ignore_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/workspace/ignore"
)

// The caller reads the files; the matchers of nested directories inherit.
func Example() {
	top := ignore.NewMatcher(ignore.Parse([]byte("*.log\n/build/\n")))
	logs := top.Enter("logs", ignore.Parse([]byte("!keep.log\n")))

	fmt.Println(top.Match("build", ignore.Directory))
	fmt.Println(top.Match("main.go", ignore.File))
	fmt.Println(logs.Match("old.log", ignore.File))
	fmt.Println(logs.Match("keep.log", ignore.File))
	// Output:
	// ignored
	// undecided
	// ignored
	// included
}
