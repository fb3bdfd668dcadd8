package servers_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// sink discards updates.
type sink struct{}

func (sink) Update(context.Context, backend.Update) error { return nil }
func (sink) Commit(context.Context, backend.Update) error { return nil }

// BenchmarkCall compares a call by the MCP SDK's client with one through a Set, which also shows
// it.
func BenchmarkCall(b *testing.B) {
	for _, revision := range eras {
		b.Run(revision+"/sdk", func(b *testing.B) {
			cmd := exec.Command(proctest.Executable())
			cmd.Env = append(os.Environ(), proctest.Env("sdk", "REVISION="+revision)...)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
			require.NoError(b, err)
			defer session.Close()
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(revision+"/set", func(b *testing.B) {
			f := newFixture(b, mcpclient.Options{})
			f.change(roottest.Open(b, folder(b)), self("s", "sdk", "REVISION="+revision))
			f.host.answer = "allow-always"
			f.call("s.echo", "{}")
			for b.Loop() {
				r := backend.ToolRequest{Name: "s.echo", Arguments: backend.Raw(`{"a":1}`)}
				if _, err := f.Call(b.Context(), sink{}, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
