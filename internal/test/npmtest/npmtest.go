// Package npmtest finds npm packages installed below testdata. If one is missing, the test is
// skipped, or fails in CI, where make test installs them.
//
//	script := npmtest.File(t, "testdata/node-acpx", ".bin/acpx")
//	command := npmtest.Everything(t) // an MCP server
//
// It must only be imported by tests.
package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// File returns the path of a file installed by npm. name is relative to the node_modules of
// packages, a directory of the repository.
func File(t testing.TB, packages, name string) string {
	t.Helper()
	path := filepath.Join(repository(t), packages, "node_modules", name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "%v: run npm ci in %s, or make test", err, packages)
	}
	return path
}

// Available reports whether File does not skip the test.
func Available(t testing.TB, packages, name string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(repository(t), packages, "node_modules", name))
	return err == nil || inCI()
}

// Node returns the path of node.
func Node(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		missing(t, "%v: install Node.js", err)
	}
	return path
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if inCI() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func inCI() bool { return os.Getenv("CI") != "" }

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
