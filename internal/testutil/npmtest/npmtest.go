// Package npmtest finds what npm has installed for the tests, below testdata. Where that is missing a test is skipped;
// in CI, where make test has installed it, the test fails.
//
//	script := npmtest.File(t, "testdata/node-acpx", ".bin/acpx")
//	command := npmtest.Everything(t) // an MCP server
//
// Only tests import it.
package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// File is the path of a file that npm has installed: name is below the node_modules of packages, a directory of the
// repository.
func File(t testing.TB, packages, name string) string {
	t.Helper()
	path := filepath.Join(repository(t), packages, "node_modules", name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "%v: run npm ci in %s, or make test", err, packages)
	}
	return path
}

// Node is the path of the node on the search path.
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
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// repository is the directory above the test's that has go.mod.
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
