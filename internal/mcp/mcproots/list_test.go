package mcproots

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Clause M12.
func TestParseList(t *testing.T) {
	entries, err := ParseList(&mcp.ListRootsResult{Roots: []*mcp.Root{
		nil, {Name: "no uri"}, {URI: "https://example.com/x"}, {URI: "file:///a%20b", Name: "A"},
	}})
	require.NoError(t, err)
	require.Len(t, entries, 4)
	require.ErrorContains(t, entries[0].Err, "no uri")
	require.ErrorContains(t, entries[1].Err, "no uri")
	var uri *URIError
	require.ErrorAs(t, entries[2].Err, &uri)
	require.Equal(t, string(notFile), uri.Reason)
	require.NoError(t, entries[3].Err)
	require.Equal(t, "file:///a%20b", entries[3].Dir.URI())

	none, err := ParseList(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// Clause M12.
func TestParseListIsBounded(t *testing.T) {
	entries, err := ParseList(&mcp.ListRootsResult{Roots: make([]*mcp.Root, 100_000)})
	require.ErrorContains(t, err, "100000 roots")
	require.Len(t, entries, 1000)
}
