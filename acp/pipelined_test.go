package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// Loads that do not wait for each other end with the servers that the last one names, on its roots.
func TestA12_M3_LoadsOneUponTheOther(t *testing.T) {
	c := served(t, acp.Options{})
	one, two := server("one", "files"), server("two", "files")
	dirs := []string{folder(t), folder(t), folder(t), folder(t), folder(t), folder(t)}
	id := c.serve(dirs[:1], one, two)
	require.Equal(t, uris(t, dirs[0]), c.use(id, "one.roots"))
	require.Equal(t, uris(t, dirs[0]), c.use(id, "two.roots"))
	upon := func(lists [][]string, servers ...map[string]any) {
		var ids, lines []string
		for _, roots := range lists {
			load, line := c.request("session/load", servedParams(id, roots, servers...))
			ids, lines = append(ids, load), append(lines, line)
		}
		c.send(lines...)
		for _, load := range ids {
			require.Nil(t, c.response(load).Error)
		}
		told := c.texts(id, "use one.roots") // perhaps after word of a restart
		require.Equal(t, uris(t, lists[len(lists)-1]...), told[len(told)-1])
	}
	var growing, shrinking [][]string
	for i := range dirs[1:] {
		growing = append(growing, dirs[:i+2])
		shrinking = append(shrinking, dirs[:len(dirs)-1-i])
	}
	upon(growing, one, two)
	require.Equal(t, len(growing), c.changes(id, "one"))
	require.Equal(t, len(growing), c.changes(id, "two"))
	upon(shrinking, one)
	for range 5 {
		upon([][]string{dirs, dirs[:2], dirs[:3], dirs[:1]}, one)
	}
	upon([][]string{dirs, dirs[:1], dirs}, two, one)
	require.Equal(t, uris(t, dirs...), c.use(id, "two.roots"))
}
