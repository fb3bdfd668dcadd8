package profiles_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

func ExampleMatch() {
	p, ok := profiles.Match(profiles.Known(),
		process.Command{Path: "npx", Args: []string{"-y", "@google/gemini-cli", "--acp"}})
	fmt.Println(p.Title, p.Roots.Flag, ok)
	// Output: Gemini CLI --include-directories true
}

func TestKnown(t *testing.T) {
	known := profiles.Known()
	require.True(t, slices.IsSortedFunc(known,
		func(a, b profiles.Profile) int { return strings.Compare(a.Name, b.Name) }))
	for i, p := range known {
		require.NotEmpty(t, p.Title, p.Name)
		require.NotEmpty(t, p.Start.Command, p.Name)
		require.NotEmpty(t, p.Start.Install, p.Name)
		require.True(t, i == 0 || known[i-1].Name != p.Name, p.Name)
		found, ok := profiles.Find(known, p.Name)
		require.True(t, ok)
		require.Equal(t, p, found)
		matched, ok := profiles.Match(known, p.StartCommand())
		require.True(t, ok)
		require.Equal(t, p.Name, matched.Name)
	}
	_, ok := profiles.Find(known, "none")
	require.False(t, ok)
	for _, name := range []string{"codex", "goose", "opencode"} {
		p, _ := profiles.Find(known, name)
		require.True(t, p.Roots.Relay, "M1: %s does not pass all roots on", name)
	}
}

func TestUsageOfRelease(t *testing.T) {
	claude, _ := profiles.Find(profiles.Known(), "claude")
	for version, restarts := range map[string]bool{
		"0.79.0": true, "v0.9.1": true, "0.80.0": false, "0.101.0": false, "1.0.0-beta.1": false, "": false,
		"strange": false, // then less than before has begun again
	} {
		require.Equal(t, restarts, claude.Usage.Counted(version).Restarts, version)
	}
	older, _ := profiles.Find(profiles.Known(), "claude-code-acp")
	require.True(t, older.Usage.Counted("").Restarts)
}

// Clause P1.
func TestChooseRootsMode(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a b"), filepath.Join(t.TempDir(), "c,d")
	dirs, err := workspace.ParseDirs([]string{first, second})
	require.NoError(t, err)
	flags := []string{"--add-dir", first, "--add-dir", second}
	for name, c := range map[string]struct {
		advertised bool
		roots      profiles.Roots
		mode       profiles.RootsMode
		flags      []string
	}{
		"the protocol comes first":     {true, profiles.Roots{Flag: "--add-dir"}, profiles.RootsByProtocol, nil},
		"then flags":                   {false, profiles.Roots{Flag: "--add-dir"}, profiles.RootsByFlags, flags},
		"then context":                 {false, profiles.Roots{}, profiles.RootsByContext, nil},
		"flags on request":             {true, profiles.Roots{Mode: profiles.RootsByFlags, Flag: "--add-dir"}, profiles.RootsByFlags, flags},
		"context on request":           {true, profiles.Roots{Mode: profiles.RootsByContext, Flag: "--add-dir"}, profiles.RootsByContext, nil},
		"the protocol if it is spoken": {false, profiles.Roots{Mode: profiles.RootsByProtocol}, profiles.RootsByContext, nil},
		"a path that would be split":   {false, profiles.Roots{Flag: "--dirs", FlagSplits: ","}, profiles.RootsByContext, nil},
	} {
		mode, args := c.roots.Choose(c.advertised, dirs)
		require.Equal(t, c.mode, mode, name)
		require.Equal(t, c.flags, args, name)
	}
}

func TestParseRootsMode(t *testing.T) {
	for _, way := range []profiles.RootsMode{profiles.RootsAuto, profiles.RootsByProtocol,
		profiles.RootsByFlags, profiles.RootsByContext} {
		parsed, err := profiles.ParseRootsMode(way.String())
		require.NoError(t, err)
		require.Equal(t, way, parsed)
	}
	_, err := profiles.ParseRootsMode("telepathy")
	require.ErrorContains(t, err, "protocol, flags or context")
	_, err = profiles.ParseRootsMode("")
	require.Error(t, err)
}
