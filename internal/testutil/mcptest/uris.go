package mcptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// URIs are directories as the URIs that a server is told, in their order. It fails the test if a path is not
// absolute.
func URIs(t testing.TB, dirs ...string) (uris []string) {
	t.Helper()
	for _, path := range dirs {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		uris = append(uris, dir.URI())
	}
	return uris
}
