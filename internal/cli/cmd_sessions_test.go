package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// The operator of a server lists, exports and deletes the sessions of its users, and each command
// is about one of them only.
func TestSessionsOfUsersOfAServer(t *testing.T) {
	dir := t.TempDir()
	store := sqlite.New(sqlite.Options{Dir: dir})
	for owner, title := range map[string]string{"ana": "Ana's task", "bob": "Bob's task", "": "my task"} {
		roots, err := workspace.NewRoots(t.TempDir(), nil)
		require.NoError(t, err)
		lease, err := store.For(owner).Create(t.Context(), sessionstore.Session{
			ID:    sessionstore.ID("id-" + strings.ToLower(title[:3])),
			Agent: sessionstore.Agent{Kind: "explore"}, Title: title,
			Keys: sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}},
		})
		require.NoError(t, err)
		_, err = store.For(owner).BeginTurn(t.Context(), lease, sessionstore.Turn{})
		require.NoError(t, err)
	}
	require.NoError(t, store.Close())
	run := func(args ...string) (string, error) { return runOn(t, dir, args...) }
	listed, err := run("sessions", "list", "--user", "ana")
	require.NoError(t, err)
	require.Contains(t, listed, "Ana's task")
	require.NotContains(t, listed, "Bob's task")
	require.NotContains(t, listed, "my task")
	_, err = run("sessions", "delete", "--user", "ana", "id-bob")
	require.ErrorContains(t, err, "id-bob")
	exported, err := run("sessions", "export", "--user", "bob", "id-bob")
	require.NoError(t, err)
	require.Contains(t, exported, "Bob's task")
	_, err = run("sessions", "delete", "--user", "bob", "last")
	require.NoError(t, err)
	listed, err = run("sessions", "list")
	require.NoError(t, err)
	require.Contains(t, listed, "my task")
	require.NotContains(t, listed, "'s task")
	_, err = run("sessions", "list", "--user", "eve")
	require.ErrorContains(t, err, "--user: eve has no sessions; acp-agent tokens list shows the users")
}

// runOn runs a command with the sessions in a directory, and returns what it prints.
func runOn(t *testing.T, dir string, args ...string) (string, error) {
	var out bytes.Buffer
	root := newCommands(streams{in: strings.NewReader(""), out: &out, err: &out})
	root.SetArgs(append(args, "--state-dir", dir))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}
