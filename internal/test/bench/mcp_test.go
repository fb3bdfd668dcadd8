package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// BenchmarkMCP measures tools of the MCP server in a folder of 20,000 files: the end of a file of
// 1.9 MB, and a search for a word that one file has.
func BenchmarkMCP(b *testing.B) {
	dir := b.TempDir()
	long := filepath.Join(dir, "long.txt")
	check(b, os.WriteFile(long, []byte(strings.Repeat("a line of some length\n", 86_000)), 0o600))
	for i := range 20_000 {
		path := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i, ".txt"))
		check(b, os.MkdirAll(filepath.Dir(path), 0o700))
		check(b, os.WriteFile(path, fmt.Appendln(nil, strings.Repeat("text ", 200), "needle", i), 0o600))
	}
	p, err := program.Start(program.Options{Command: []string{build(b, "cmd/acp-agent"), "mcp", "--dir", dir}, Stderr: os.Stderr})
	check(b, err)
	server := &agent{Process: p, b: b}
	b.Cleanup(server.leave)
	server.call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "bench", "version": "1"},
	}, new(struct{}))
	for name, params := range map[string]map[string]any{
		"Tail":   {"name": "read_file", "arguments": map[string]any{"path": long, "tail": 20}},
		"Search": {"name": "search", "arguments": map[string]any{"pattern": "needle 12345$", "path": dir}},
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, func() time.Duration {
				var result struct{ IsError bool }
				took := timed(func() { server.call("tools/call", params, &result) })
				if result.IsError {
					b.Fatal("the call failed")
				}
				return took
			})
		})
	}
}
