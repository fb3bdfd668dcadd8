// Package roottest opens workspaces for tests. They are closed when the test ends.
//
//	w := roottest.Open(t, cwd, additional...)
//
// It must only be imported by tests.
package roottest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Open opens the directories as roots, without a policy.
func Open(t testing.TB, cwd string, additional ...string) *workspace.Workspace {
	t.Helper()
	return OpenWith(t, workspace.Options{}, cwd, additional...)
}

// OpenWith is Open with other options.
func OpenWith(
	t testing.TB, o workspace.Options, cwd string, additional ...string,
) *workspace.Workspace {
	t.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(t, err)
	w, err := workspace.Open(t.Context(), roots, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}
