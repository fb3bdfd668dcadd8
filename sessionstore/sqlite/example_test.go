package sqlite_test

import (
	"context"
	"fmt"
	"os"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	dir, err := os.MkdirTemp("", "state-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	cwd, _ := workspace.ParseDir("/src/app")
	keys := sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}

	// One window creates a session …
	window := sqlite.New(sqlite.Options{Dir: dir})
	defer window.Close()
	lease, _ := window.Create(ctx, sessionstore.Session{ID: "1", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys})

	// … another one opens it, which fences the first.
	other := sqlite.New(sqlite.Options{Dir: dir})
	defer other.Close()
	_, _ = other.Activate(ctx, "1", sessionstore.Activation{Keys: keys})
	fmt.Println(window.Append(ctx, lease, nil))
	// Output:
	// session "1" was opened in another window; load it again
}
