package acp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
)

// Where a disk takes two spellings for one directory, so do lists, loads and joined sessions. Where
// it does not, they are two.
//
// Clause A17.
func TestSpellingsThatTheDiskTakesForOne(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	disk, plain := folder(t), folder(t)
	fusetest.Mount(t, disk, "Caf\u00e9/App", "Caf\u00e9/lib")
	c := start(t, acp.Options{})
	in := func(names ...string) string { return filepath.Join(append([]string{disk}, names...)...) }
	id := c.open(in("cafe\u0301", "app"), in("CAF\u00c9", "LIB"))
	for _, name := range []string{"Caf\u00e9", "cafe\u0301", "CAFE\u0301", "caf\u00c9"} {
		require.Equal(t, []string{id}, c.by(in(name, "aPP")), "%q", name)
		require.Len(t, c.list(encode(map[string]any{
			"additionalDirectories": []string{in(name, "Lib")}})), 1, "%q", name)
		c.call("session/load", rootsParams(id, in(name, "App"), in(name, "lib")))
		require.Equal(t, in("cafe\u0301", "app"), c.find(id).Cwd, "as it was first spelled")
	}
	require.Empty(t, c.by(in("Cafe", "App")), "this is another name")
	require.Empty(t, c.by(in("Caf\u00e9", "App", "x")), "what is missing has its text")

	for _, name := range []string{"App", "app"} {
		require.NoError(t, os.Mkdir(filepath.Join(plain, name), 0o700))
	}
	other := c.open(filepath.Join(plain, "App"))
	require.Equal(t, []string{other}, c.by(filepath.Join(plain, "App")))
	require.Empty(t, c.by(filepath.Join(plain, "app")))
}
