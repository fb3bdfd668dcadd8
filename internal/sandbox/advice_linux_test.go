package sandbox_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// No message makes acp-agent suggest a path that leads out of the sandbox.
//
// Clause X8.
func TestAdviceNeverWidens(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	in, home := dirtest.New(t), dirtest.New(t, "repo/src/f", "", "repo/.git/HEAD", "",
		"src/a/b/repo/.git/HEAD", "", "bare/HEAD", "", "bare/refs/x", "", "bare/objects/x", "",
		"tool/f", "", ".ssh/id", "", "many/x", "", ".config/tool/f", "", ".cargo/x", "",
		"own/sessions/db", "")
	require.NoError(t, os.MkdirAll(filepath.Join(home, "programs"), 0o700))
	require.NoError(t, os.Symlink(".ssh", filepath.Join(home, "keys")))
	require.NoError(t, os.Symlink("../repo/.git", filepath.Join(home, "tool", "git")))
	for i := range 2500 {
		require.NoError(t, os.Mkdir(filepath.Join(home, "many", strconv.Itoa(i)), 0o700))
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "programs")+":/usr/bin")
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{in},
		Own: []string{filepath.Join(home, "own")}}
	const (
		git, all, secret = "repository of git", "all your files", "passwords"
		program, own     = "outside the sandbox", "acp-agent"
	)
	for path, want := range map[string]string{
		"repo/.git/packed-refs.lock": git, "repo/.git/config": git, "repo/.git/hooks/x": git,
		"repo/.git": git, "repo/.git/worktrees/y/index.lock": git, "bare/packed-refs.lock": git,
		"bare/new/deep": git, "repo/.GIT/x": git, "tool/git/config": git, "new/.git/config": git,
		"": all, "..": all, ".ssh/new": secret, ".ssh": secret, "keys/new": secret,
		".gnupg/x/y": secret, ".aws/credentials": secret, ".cargo/credentials.toml": secret,
		".config": secret, ".docker/config.json": secret, ".netrc": secret,
		".bashrc": program, ".profile": program, ".config/fish/x": program, ".local/bin/x": program,
		".config/systemd/user/x.service": program, "programs/new": program, "programs": program,
		"own": own, "own/sessions/db": own, "own/new": own,
		// a narrower path in place of a directory that is withheld
		"repo/new": "=repo/new", "src/new": "=src/new", "src/a/new": "=src/a/new", "many/x": "=many/x",
		".cargo/new": "=.cargo/new", ".config/new": "=.config/new", "file": "=file",
		// what belongs to one program
		"repo/src/f": "=repo/src", "tool/f": "=tool", ".config/tool/f": "=.config/tool",
		".cargo/registry/x/y": "=.cargo/registry", "new/deep/er": "=new", ".cache/x/y": "=.cache/x",
		".npm/_cacache/x": "=.npm",
	} {
		d, denied := p.Denied("open '" + filepath.Join(home, path) + "': Permission denied")
		require.True(t, denied, path)
		if grant, ok := strings.CutPrefix(want, "="); ok {
			require.Equal(t, filepath.Join(home, grant), d.Grant, "%s: %s", path, d.Withheld)
			require.Empty(t, d.Withheld)
			continue
		}
		require.Empty(t, d.Grant, path)
		require.Contains(t, d.Withheld, want, path)
	}

	// To read a program is not to change it, but keys and repositories stay closed.
	p.Mode = sandbox.Strict
	for path, want := range map[string]string{"programs/x": "programs", ".profile": ".profile",
		".ssh/id": "", "repo/.git/config": "", "own/sessions/db": "", "": ""} {
		d, _ := p.Denied("open '" + filepath.Join(home, path) + "': Permission denied")
		require.Equal(t, want != "", d.Grant != "", "%s: %s", path, d.Withheld)
		if want != "" {
			require.Equal(t, filepath.Join(home, want), d.Grant)
		}
	}
}
