package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// An unchanged list is not written again.
func TestUnchangedSession(t *testing.T) {
	const now = int64(1_800_000_000_000)
	cwd, err := workspace.ParseDir("/src/app")
	require.NoError(t, err)
	n := sessionstore.Session{ID: "id", StateKey: "a", Title: "title", Updated: toTime(now - 1000),
		Keys: sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{})}}
	known := row{imported: true, created: now - 1000, updated: now - 1000, title: "title",
		listed: now, keys: keyTexts{cwd: "/src/app", realCwd: "/src/app"}}
	same := known
	require.False(t, same.learn(n, false, nil, now+1))
	require.Equal(t, known, same)
}

func TestIndexed(t *testing.T) {
	require.EqualValues(t, 6, indexed(0, 9, 7, false, true))
	require.EqualValues(t, 9, indexed(6, 9, 7, false, true), "a passage too long is cut")
}
