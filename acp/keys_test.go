package acp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// linkTo makes, or moves, a link of the test's own to a folder.
func linkTo(t *testing.T, link, target string) {
	t.Helper()
	if err := os.Remove(link); err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.NoError(t, os.Symlink(target, link))
}

// by are the ids of the sessions with a working directory.
func (c *client) by(cwd string) []string {
	c.t.Helper()
	ids := []string{}
	for _, s := range c.list(encode(map[string]any{"cwd": cwd})) {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func TestA17_AMatchBySpellingRenewsTheRealPathAtTheNextLoad(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, link := folder(t), folder(t), filepath.Join(folder(t), "link")
	linkTo(t, link, a)
	id := c.open(link)
	require.Equal(t, []string{id}, c.by(link))
	require.Equal(t, []string{id}, c.by(a))

	linkTo(t, link, b)
	require.Equal(t, []string{id}, c.by(link), "by its spelling")
	require.Equal(t, []string{id}, c.by(a), "by what it was at its last request")
	require.Empty(t, c.by(b))
	c.call("session/resume", rootsParams(id, link))
	require.Equal(t, []string{id}, c.by(b))
	require.Empty(t, c.by(a))
	require.Equal(t, link, c.find(id).Cwd)
	require.Equal(t, "cwd_mismatch", c.try("session/load", rootsParams(id, a)).reason(t), "A11")
	c.call("session/load", rootsParams(id, b))
	require.Equal(t, link, c.find(id).Cwd, "the spelling given at new is kept")
}

func TestA17_AFolderThatIsMissingIsFoundByItsText(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	parent := folder(t)
	a, link := filepath.Join(parent, "a"), filepath.Join(parent, "link")
	require.NoError(t, os.Mkdir(a, 0o700))
	linkTo(t, link, a)
	id := c.open(link)
	require.NoError(t, os.Remove(a))
	require.Equal(t, []string{id}, c.by(a), "the real path on record")
	require.Equal(t, []string{id}, c.by(link), "the spelling")
	require.Empty(t, c.by(parent))
}

func TestA17_RootsKeepTheSpellingOfTheLatestRequest(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, link := folder(t), folder(t), filepath.Join(folder(t), "link")
	linkTo(t, link, b)
	id := c.open(a, b)
	find := func(roots ...string) []listed {
		return c.list(encode(map[string]any{"cwd": a, "additionalDirectories": roots}))
	}
	c.call("session/resume", rootsParams(id, a, link))
	require.Equal(t, []string{link}, c.find(id).AdditionalDirectories)
	require.Len(t, find(link), 1)
	require.Len(t, find(b), 1, "by the real path")
	c.call("session/load", rootsParams(id, a, b, link))
	require.Equal(t, []string{b, link}, c.find(id).AdditionalDirectories, "A7: two spellings are two roots")
	require.Len(t, find(b, b+"/."), 0, "A7: a filter's duplicates are dropped")
	require.Len(t, find(link, b), 1, "by the real paths, which are the same in this order too")
}
