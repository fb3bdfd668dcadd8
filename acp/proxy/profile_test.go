package proxy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/workspace"
)

func ExampleMatchProfile() {
	p, ok := proxy.MatchProfile(proxy.KnownProfiles(),
		proxy.Command{Path: "npx", Args: []string{"-y", "@google/gemini-cli", "--acp"}})
	fmt.Println(p.Title, p.Flag, ok)
	// Output: Gemini CLI --include-directories true
}

func TestKnownProfiles(t *testing.T) {
	known := proxy.KnownProfiles()
	require.True(t, slices.IsSortedFunc(known,
		func(a, b proxy.Profile) int { return strings.Compare(a.Name, b.Name) }))
	for i, p := range known {
		require.NotEmpty(t, p.Title, p.Name)
		require.NotEmpty(t, p.Command, p.Name)
		require.NotEmpty(t, p.Install, p.Name)
		require.True(t, i == 0 || known[i-1].Name != p.Name, p.Name)
		found, ok := proxy.FindProfile(known, p.Name)
		require.True(t, ok)
		require.Equal(t, p, found)
		matched, ok := proxy.MatchProfile(known, p.StartCommand())
		require.True(t, ok)
		require.Equal(t, p.Name, matched.Name)
	}
	_, ok := proxy.FindProfile(known, "none")
	require.False(t, ok)
	for _, name := range []string{"codex", "goose", "opencode"} {
		p, _ := proxy.FindProfile(known, name)
		require.True(t, p.Relay, "M1: %s does not pass all roots on", name)
	}
}

func TestProfileFlags(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a b"), filepath.Join(t.TempDir(), "c,d")
	dirs, err := workspace.ParseDirs([]string{first, second})
	require.NoError(t, err)
	args, ok := proxy.Flags(proxy.Profile{Flag: "--add-dir"}, dirs)
	require.True(t, ok)
	require.Equal(t, []string{"--add-dir", first, "--add-dir", second}, args)
	_, ok = proxy.Flags(proxy.Profile{Flag: "--dirs", FlagSplits: ","}, dirs)
	require.False(t, ok, "it would be split in two")
	_, ok = proxy.Flags(proxy.Profile{}, dirs)
	require.False(t, ok)
}

func TestParseRootsMode(t *testing.T) {
	for _, way := range []proxy.RootsMode{proxy.RootsAuto, proxy.RootsByProtocol,
		proxy.RootsByFlags, proxy.RootsByContext} {
		parsed, err := proxy.ParseRootsMode(way.String())
		require.NoError(t, err)
		require.Equal(t, way, parsed)
	}
	_, err := proxy.ParseRootsMode("telepathy")
	require.ErrorContains(t, err, "protocol, flags or context")
	_, err = proxy.ParseRootsMode("")
	require.Error(t, err)
}
