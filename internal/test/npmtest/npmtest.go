// Package npmtest finds npm packages installed below testdata. If one is missing, the test is
// skipped, or fails in CI.
//
//	script := npmtest.File(t, "testdata/node-acpx", ".bin/acpx")
//	command := npmtest.Everything(t) // an MCP server
//
// It must only be imported by tests.
package npmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// File returns the path of a file installed by npm. name is relative to the node_modules of
// packages, a directory of the repository. It may be a pattern of [filepath.Glob].
func File(t testing.TB, packages, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(repository(t), packages, "node_modules", name))
	require.NoError(t, err)
	if len(found) == 0 {
		needs.Missing(t, "npm", fmt.Sprintf(
			"%s has no %s: make npm installs it", packages, name))
	}
	return found[0]
}

// Available reports whether File does not skip the test.
func Available(t testing.TB, packages, name string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(repository(t), packages, "node_modules", name))
	return err == nil || needs.InCI()
}

// Node returns the path of node.
func Node(t testing.TB) string {
	t.Helper()
	return needs.Programs(t, "node")[0]
}

// repository returns the root of the repository.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		require.NotEqual(t, above, dir, "the test does not run in the repository")
		dir = above
	}
}

// servers is the directory in which the MCP servers are installed.
const servers = "testdata/node-mcp"

// Everything returns the command of @modelcontextprotocol/server-everything. Its tool
// get-roots-list returns the roots; see [Echoed].
func Everything(t testing.TB) []string {
	t.Helper()
	return server(t, "@modelcontextprotocol/server-everything/dist/index.js")
}

// Filesystem returns the command of @modelcontextprotocol/server-filesystem, which only accesses
// the roots.
func Filesystem(t testing.TB) []string {
	t.Helper()
	return server(t, "@modelcontextprotocol/server-filesystem/dist/index.js")
}

// Playwright returns the command of @playwright/mcp.
func Playwright(t testing.TB) []string {
	t.Helper()
	return server(t, "@playwright/mcp/cli.js")
}

// Modern returns the command of a server of the TypeScript SDK that supports revision 2026-07-28.
// Its tool roots returns the URIs of the roots, one per line.
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

// Echoed returns the URIs in an answer of get-roots-list; see [Everything].
func Echoed(answer string) (uris []string) {
	for _, match := range echoed.FindAllStringSubmatch(answer, -1) {
		uris = append(uris, match[1])
	}
	return uris
}
