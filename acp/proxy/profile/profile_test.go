package profile_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	p, _ := profile.Match(profile.Known(), process.Command{Path: "/usr/local/bin/gemini", Args: []string{"--acp"}})
	shared, err := filepath.Abs("shared")
	if err != nil {
		fmt.Println(err)
		return
	}
	dirs, err := workspace.ParseDirs([]string{shared, filepath.Join(shared, "skills")})
	if err != nil {
		fmt.Println(err)
		return
	}
	args, ok := p.Flags(dirs)
	fmt.Println(p.Title, strings.Count(strings.Join(args, " "), "--include-directories"), ok)
	// Output: Gemini CLI 2 true
}

func TestKnownProfilesAreWhole(t *testing.T) {
	known := profile.Known()
	require.True(t, slices.IsSortedFunc(known, func(a, b profile.Profile) int { return strings.Compare(a.Name, b.Name) }))
	for i, p := range known {
		require.NotEmpty(t, p.Title, p.Name)
		require.NotEmpty(t, p.Command, p.Name)
		require.NotEmpty(t, p.Install, p.Name)
		require.True(t, i == 0 || known[i-1].Name != p.Name, p.Name)
		found, ok := profile.Find(known, p.Name)
		require.True(t, ok)
		require.Equal(t, p, found)
		matched, ok := profile.Match(known, p.Start())
		require.True(t, ok)
		require.Equal(t, p.Name, matched.Name)
	}
	_, ok := profile.Find(known, "none")
	require.False(t, ok)
}

func TestACommandIsMatchedByProgramOrPackage(t *testing.T) {
	for _, c := range []struct {
		command process.Command
		want    string
	}{
		{process.Command{Path: "/opt/x/opencode", Args: []string{"acp"}}, "opencode"},
		{process.Command{Path: "opencode.CMD"}, "opencode"},
		{process.Command{Path: "npx", Args: []string{"-y", "opencode-ai@1.2.3", "acp"}}, "opencode"},
		{process.Command{Path: "bunx", Args: []string{"@google/gemini-cli", "--acp"}}, "gemini"},
		{process.Command{Path: "npx", Args: []string{"@scope/agent"}}, ""},
		{process.Command{Path: "cat", Args: []string{"opencode-ai"}}, ""},
		{process.Command{}, ""},
	} {
		p, ok := profile.Match(profile.Known(), c.command)
		require.Equal(t, c.want != "", ok, c.command)
		require.Equal(t, c.want, p.Name)
	}
}

func TestFlagsNameEachDirectory(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a b"), filepath.Join(t.TempDir(), "c,d")
	dirs, err := workspace.ParseDirs([]string{first, second})
	require.NoError(t, err)
	args, ok := profile.Profile{Flag: "--add-dir"}.Flags(dirs)
	require.True(t, ok)
	require.Equal(t, []string{"--add-dir", first, "--add-dir", second}, args)
	_, ok = profile.Profile{Flag: "--dirs", FlagSplits: ","}.Flags(dirs)
	require.False(t, ok, "it would be read as two")
	_, ok = profile.Profile{}.Flags(dirs)
	require.False(t, ok)
}

func TestWaysAreWrittenAsTheyAreRead(t *testing.T) {
	for _, way := range []profile.Way{profile.Auto, profile.ByProtocol, profile.ByFlags, profile.ByContext} {
		parsed, err := profile.ParseWay(way.String())
		require.NoError(t, err)
		require.Equal(t, way, parsed)
	}
	_, err := profile.ParseWay("telepathy")
	require.ErrorContains(t, err, "protocol, flags or context")
	_, err = profile.ParseWay("")
	require.Error(t, err)
}
