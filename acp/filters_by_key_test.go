package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// A list of roots matches by its spelling or by its real paths, not one entry by this and another by that.
func TestA17_AListMatchesAsAWholeByOneKey(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d, links := folder(t), folder(t), folder(t), folder(t)
	one, two := filepath.Join(links, "one"), filepath.Join(links, "two")
	linkTo(t, one, b)
	linkTo(t, two, d)
	id := c.open(a, one, d)
	matches := func(roots ...string) bool {
		return len(c.list(encode(map[string]any{"additionalDirectories": roots}))) == 1
	}
	require.True(t, matches(one, d), "as it is spelled")
	require.True(t, matches(b, two), "by the real paths")
	require.True(t, matches(one, two), "which these have too")
	require.False(t, matches(d, one))

	linkTo(t, one, a)
	require.True(t, matches(one, d), "as it is spelled")
	require.True(t, matches(b, two), "by the real paths at the last request")
	require.False(t, matches(one, two), "one by its spelling, the other by its real path")
	require.False(t, matches(a, d), "that is not on record")
	c.call("session/resume", rootsParams(id, a, one, d))
	require.True(t, matches(a, two), "now it is")
	require.False(t, matches(b, d))

	require.NoError(t, os.Remove(d))
	require.True(t, matches(a, d), "what is missing has its text for a real path")
	require.False(t, matches(a, two+"/x"))
}

func TestA17_AForkHasTheSpellingOfItsRequest(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	link, other := filepath.Join(folder(t), "link"), filepath.Join(folder(t), "other")
	linkTo(t, link, a)
	linkTo(t, other, a)
	source := c.open(a)
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(source, link, b)), &fork))
	require.Equal(t, link, c.find(fork.SessionID).Cwd)
	require.Equal(t, a, c.find(source).Cwd)
	for _, cwd := range []string{other, a, link} {
		c.call("session/load", rootsParams(fork.SessionID, cwd))
		require.Equal(t, link, c.find(fork.SessionID).Cwd, "of whatever a later request says")
		require.ElementsMatch(t, []string{fork.SessionID, source}, c.by(cwd))
	}
}
