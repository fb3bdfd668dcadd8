package mcprelay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(top)
	p, err := mcprelay.Listen(filepath.Join(top, "relay"), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err) // says what to do about it
		return
	}
	defer p.Close()
	roots, err := workspace.NewRoots(top, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	s, err := mcproots.Take(w)
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Set(s)

	relay := process.Command{Path: "acp-agent", Args: []string{"mcp-relay"}}
	c := p.Wrap(relay, process.Command{Name: "files", Path: "some-mcp-server",
		Args: []string{"--verbose"}})
	fmt.Println(c.Path, c.Args[0], c.Args[1], "SOCKET", c.Args[3:])
	// Output: acp-agent mcp-relay --roots-from SOCKET [--server files -- some-mcp-server --verbose]
}
