package mcproots_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcproots"
)

func TestM12_EntriesThatAreNoRoots(t *testing.T) {
	offers, err := mcproots.Offers(&mcp.ListRootsResult{Roots: []*mcp.Root{
		nil, {Name: "no uri"}, {URI: "https://example.com/x"}, {URI: "file:///a%20b", Name: "A"},
	}})
	require.NoError(t, err)
	require.Len(t, offers, 4)
	require.ErrorIs(t, offers[0].Err, mcproots.ErrNoURI)
	require.ErrorIs(t, offers[1].Err, mcproots.ErrNoURI)
	var uri *mcproots.URIError
	require.ErrorAs(t, offers[2].Err, &uri)
	require.Equal(t, mcproots.NotFile, uri.Reason)
	require.NoError(t, offers[3].Err)
	require.Equal(t, "file:///a%20b", offers[3].Dir.URI())

	none, err := mcproots.Offers(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestM12_AHundredThousandRoots(t *testing.T) {
	list := &mcp.ListRootsResult{Roots: make([]*mcp.Root, 100_000)}
	offers, err := mcproots.Offers(list)
	var more *mcproots.MoreError
	require.ErrorAs(t, err, &more)
	require.Equal(t, 100_000, more.Entries)
	require.Len(t, offers, mcproots.MaxOffered)
}
