package npmtest

import (
	"path/filepath"
	"regexp"
	"testing"
)

// servers is the directory of the MCP servers.
const servers = "testdata/node-mcp"

// Everything is the command of @modelcontextprotocol/server-everything, whose tool get-roots-list says what it was
// told: see [Echoed].
func Everything(t testing.TB) []string {
	t.Helper()
	return server(t, "@modelcontextprotocol/server-everything/dist/index.js")
}

// Filesystem is the command of @modelcontextprotocol/server-filesystem, which works in the roots alone.
func Filesystem(t testing.TB) []string {
	t.Helper()
	return server(t, "@modelcontextprotocol/server-filesystem/dist/index.js")
}

// Playwright is the command of @playwright/mcp.
func Playwright(t testing.TB) []string {
	t.Helper()
	return server(t, "@playwright/mcp/cli.js")
}

// Modern is the command of a server of the TypeScript SDK that speaks 2026-07-28. Its tool roots says
// the URIs that it was told, one a line.
func Modern(t testing.TB) []string {
	t.Helper()
	command := server(t, "")
	return []string{command[0], filepath.Join(filepath.Dir(command[1]), "modern.mjs")}
}

func server(t testing.TB, script string) []string {
	t.Helper()
	return []string{Node(t), File(t, servers, script)}
}

var echoed = regexp.MustCompile(`(?m)^   URI: (.*)$`)

// Echoed are the URIs that server-everything says it was told, by what its tool get-roots-list answered.
func Echoed(answer string) (uris []string) {
	for _, match := range echoed.FindAllStringSubmatch(answer, -1) {
		uris = append(uris, match[1])
	}
	return uris
}
