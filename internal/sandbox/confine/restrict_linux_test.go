package confine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// at returns a command with a home and a temporary directory.
func at(home, temp string) process.Command {
	return process.Command{Path: "/bin/true", Env: []string{"HOME=" + home, "TMPDIR=" + temp}}
}

// restrict restricts a command that has these roots.
func restrict(
	t *testing.T, c process.Command, s sandbox.Settings, roots ...string,
) process.Command {
	t.Helper()
	var opened []workspace.Root
	if len(roots) > 0 {
		opened = roottest.Open(t, roots[0], roots[1:]...).Opened()
	}
	restricted, err := confine.Command(c, s, opened)
	require.NoError(t, err)
	return restricted
}

// A command cannot widen its sandbox by a link in a root that takes the place of another one.
//
// Clauses X1, X3.
func TestRestrictFollowsNoLinks(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	state := filepath.Join(home, "state")
	s := sandbox.Settings{Mode: sandbox.Write, State: []string{"~/state/", "~/settings.json"}}
	c := at(home, t.TempDir())
	restricted := restrict(t, c, s, "/usr")
	require.Contains(t, restricted.Sandbox.Write, state)
	require.DirExists(t, state)

	require.NoError(t, os.Remove(state))
	require.NoError(t, os.Symlink(outside, state))
	restricted = restrict(t, c, s, home)
	require.NotContains(t, restricted.Sandbox.Write, outside)
}

func TestRestrictExpandsPaths(t *testing.T) {
	home, temp, linked := t.TempDir(), t.TempDir(), t.TempDir()
	link := filepath.Join(home, "link")
	require.NoError(t, os.Symlink(linked, link))
	c := at(home, temp)
	c.Env = append(c.Env, "OWN="+temp, "OWN="+linked, "RELATIVE=a/b")
	s := sandbox.Settings{Mode: sandbox.Strict, Write: []string{"~/link", "$OWN"},
		Read: []string{"~/read", "$OWN/read", "$NONE/read", "$RELATIVE"}, State: []string{"$NONE/state/"}}
	restricted := restrict(t, c, s)
	require.Equal(t, []string{temp, linked}, restricted.Sandbox.Write)
	require.Equal(t, []string{filepath.Join(home, "read"), filepath.Join(linked, "read")}, restricted.Sandbox.Read[:2])
	require.True(t, restricted.Sandbox.Reads("/usr/bin"))

	for _, wrong := range []string{"/missing", "$NONE/x", "$RELATIVE", "relative"} {
		s.Write = []string{wrong}
		_, err := confine.Command(c, s, nil)
		require.ErrorContains(t, err, wrong)
		require.ErrorContains(t, err, "sandboxWrite")
		require.ErrorAs(t, err, new(*process.StartError))
	}
	c.Env = []string{"HOME=" + home, "TMPDIR=/missing"}
	_, err := confine.Command(c, sandbox.Settings{Mode: sandbox.Write}, nil)
	require.ErrorContains(t, err, "/missing")
	c.Env = []string{"HOME=", "TMPDIR="}
	restricted = restrict(t, c, sandbox.Settings{Mode: sandbox.Write, State: []string{"~/x/"}})
	require.Equal(t, []string{"/tmp"}, restricted.Sandbox.Write)
}

// What cannot be created here cannot be used by the command either.
func TestRestrictWorksInAReadOnlyHome(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	home, temp := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(home, 0o500))
	s := sandbox.Settings{Mode: sandbox.Write, State: []string{"~/state/"}}
	restricted := restrict(t, at(home, temp), s)
	require.Equal(t, []string{temp}, restricted.Sandbox.Write)
}

// Clause X2.
func TestRestrictWithoutLandlock(t *testing.T) {
	if proctest.WithoutLandlock(t) {
		return
	}
	s := sandbox.Settings{Mode: sandbox.Write}
	restricted := restrict(t, at(t.TempDir(), t.TempDir()), s)
	_, err := process.Start(t.Context(), restricted, process.Options{})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorContains(t, err, `"sandboxFallback": "warn"`)
	s.Write = []string{"/missing"}
	_, err = confine.Command(at(t.TempDir(), t.TempDir()), s, nil)
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorContains(t, err, `"sandboxFallback": "warn"`)
	s.Optional = true
	c := restrict(t, at(t.TempDir(), t.TempDir()), s)
	require.Equal(t, sandbox.Off, c.Sandbox.Mode)
	require.ErrorIs(t, s.Unprotected(), sandbox.ErrUnavailable)
	require.Equal(t, "off, because it is not available here", process.InEffect(s))
}
