package servers_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/workspace"
)

// The servers of one session.
func Example() {
	var host backend.Host // of the session

	starting := make(chan struct{}, 8) // one for the process
	session := func(ctx context.Context, w *workspace.Workspace, configs []mcpclient.Config) error {
		set := servers.NewSet(starting, mcpclient.Options{})
		defer set.Close(ctx)
		change, err := set.Prepare(w, configs)
		if err != nil {
			return err
		}
		set.Commit(change, host, nil) // once the session is stored

		listings, err := set.List(ctx)
		if err != nil {
			return err
		}
		for l := range listings {
			for _, tool := range l.Tools {
				result, err := set.Call(ctx, host, backend.ToolRequest{Name: tool.Name})
				fmt.Println(tool.Name, result.Content, err)
			}
		}
		return nil
	}

	roots, err := workspace.NewRoots(os.TempDir(), nil)
	if err != nil {
		log.Fatal(err)
	}
	w, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	fmt.Println(session(context.Background(), w, nil))
	// Output: <nil>
}
