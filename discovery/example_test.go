package discovery_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

func ExampleScan() {
	app, _ := filepath.Abs("../testdata/workspace/app")
	skills, _ := filepath.Abs("../testdata/workspace/skills")
	roots, err := workspace.NewRoots(app, []string{skills})
	if err != nil {
		fmt.Println(err)
		return
	}
	ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ws.Close()

	catalog, err := discovery.Scan(context.Background(), ws)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range catalog.Artifacts() {
		fmt.Printf("root %d: %s %s (%s)\n", a.Root.Index, a.Kind, a.Name, a.State)
	}
	// Output:
	// root 0: instruction AGENTS.md (active)
	// root 0: skill release (active)
	// root 0: command handler (active)
	// root 0: mcp_server orders-db (active)
	// root 1: instruction AGENTS.md (active)
	// root 1: skill add-endpoint (active)
	// root 1: skill flaky-tests (active)
	// root 1: skill release (shadowed)
}
