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
		"own/sessions/db", "", "mixed/x/.env", "", "programs/x", "")
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
		git, all, hidden = "git repository", "all your files", "passwords"
		program, own     = "outside the sandbox", "acp-agent"
	)
	for path, want := range map[string]string{
		"repo/.git/packed-refs.lock": git, "repo/.git/config": git, "repo/.git/hooks/x": git,
		"repo/.git": git, "repo/.git/worktrees/y/index.lock": git, "bare/packed-refs.lock": git,
		"bare/new/deep": git, "repo/.GIT/x": git, "tool/git/config": git, "new/.git/config": git,
		"": all, "..": all, ".ssh/new": hidden, ".ssh": hidden, "keys/new": hidden,
		".gnupg/x/y": hidden, ".aws/credentials": hidden, ".cargo/credentials.toml": hidden,
		".config": hidden, ".docker/config.json": hidden, ".netrc": hidden,
		".bashrc": hidden, ".profile": hidden, ".config/fish/x": hidden, ".local/bin/x": hidden,
		".config/systemd/user/x.service": hidden, "programs/new": program, "programs": program,
		".config/tool/f": hidden, ".config/new": hidden, ".cargo/new": hidden, ".claude/x": hidden,
		".nvm/nvm.sh": hidden, ".local/lib/python3/site-packages/x.pth": hidden, ".forward": hidden,
		".bash_history": hidden, ".cache": hidden, ".cache/huggingface/token": hidden,
		".cache/pre-commit/x": hidden, "repo/.husky/x": hidden, "repo/.hg/hgrc": hidden,
		"repo/.envrc": hidden, "new/bin/x": program, "go/bin/x": program,
		"Library/LaunchAgents/x": hidden, "Library/Caches/x/y": "=Library/Caches/x",
		"own": own, "own/sessions/db": own, "own/new": own,
		// a narrower path in place of a directory that is withheld
		"repo/new": "=repo/new", "src/new": "=src/new", "src/a/new": "=src/a/new", "many/x": "=many/x",
		"file": "=file", "mixed/new": "=mixed/new",
		// what belongs to one program
		"repo/src/f": "=repo/src", "tool/f": "=tool",
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

	// The home directory may be a link.
	link := filepath.Join(in, "link")
	require.NoError(t, os.Symlink(home, link))
	t.Setenv("HOME", link)
	d, _ := p.Denied("open '" + filepath.Join(link, ".cache/x/y") + "': Permission denied")
	require.Equal(t, filepath.Join(link, ".cache/x"), d.Grant, d.Withheld)
	t.Setenv("HOME", home)

	// To read a program is not to change it, but keys and repositories stay closed.
	p.Mode = sandbox.Strict
	for path, want := range map[string]string{"programs/x": "programs", ".profile": "",
		".ssh/id": "", "repo/.git/config": "", "own/sessions/db": "", "": ""} {
		d, _ := p.Denied("open '" + filepath.Join(home, path) + "': Permission denied")
		require.Equal(t, want != "", d.Grant != "", "%s: %s", path, d.Withheld)
		if want != "" {
			require.Equal(t, filepath.Join(home, want), d.Grant)
		}
	}
}
