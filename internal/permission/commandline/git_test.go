package commandline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// write creates or extends a file of the root.
func (p ground) write(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(p.t, err)
	_, err = f.WriteString(content)
	require.NoError(p.t, err)
	require.NoError(p.t, f.Close())
}

// A repository whose configuration runs programs or leads elsewhere is not understood. runs is a
// command that shows what the configuration does, "" if that depends on the version of git.
func TestGitConfiguration(t *testing.T) {
	for name, c := range map[string]struct{ config, runs string }{
		"fsmonitor": {"[core]\n\tfsmonitor = ./run.sh\n", "git status"},
		"filter":    {"[filter \"x\"]\n\tclean = ./run.sh\n", "git diff HEAD"},
		"textconv":  {"[diff \"x\"]\n\ttextconv = ./run.sh\n", "git log -p"},
		"command":   {"[diff \"x\"]\n\tcommand = ./run.sh\n", "git diff HEAD"},
		"external":  {"[diff]\n\texternal = ./run.sh\n", "git diff HEAD"},
		"include":   {"[include]\n\tpath = ../evil\n", "git status"},
		"if":        {"[includeIf \"gitdir:**\"]\n\tpath = ../evil\n", "git status"},
		"one line":  {"[core] fsmonitor = ./run.sh\n", "git status"},
		"case":      {"[CORE]\n\tFsMonitor = ./run.sh\n", "git status"},
		"worktree":  {"[core]\n\tworktree = ../../out\n", "git ls-files -o"},
		"blame":     {"[blame]\n\tignoreRevsFile = ../out/secret.txt\n", ""},
		"pager":     {"[core]\n\tpager = ./run.sh\n", ""}, "pager of": {"[pager]\n\tlog = ./run.sh\n", ""},
		"gpg":         {"[gpg]\n\tprogram = ./run.sh\n", ""},
		"promisor":    {"[remote \"x\"]\n\tpromisor = true\n", ""},
		"partial":     {"[extensions]\n\tpartialClone = x\n", ""},
		"ssh":         {"[core]\n\tsshCommand = ./run.sh\n", ""},
		"old section": {"[core.x]\n\tfsmonitor = ./run.sh\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newGround(t)
			p.write("evil", "[core]\n\tfsmonitor = ./run.sh\n")
			p.write(".gitattributes", "*.txt filter=x diff=x\n")
			p.write("a.txt", "more\n")
			p.write(".git/config", c.config)
			_, err := Understand(p.ws, p.root, "git status")
			require.Error(t, err)
			if c.runs != "" {
				output, marked := p.run(p.root, c.runs)
				require.True(t, marked || strings.Contains(output, "secret.txt"), output)
			}
		})
	}
}

// What the user's own configuration lets a program read is not read for a rule.
func TestOwnConfiguration(t *testing.T) {
	p := newGround(t)
	follow := filepath.Join(p.top, "rgrc")
	require.NoError(t, os.WriteFile(follow, []byte("--follow\n"), 0o600))
	own := "RIPGREP_CONFIG_PATH=" + follow
	for _, line := range []string{"rg 1234", "rg --files --type txt"} {
		t.Run(line, func(t *testing.T) {
			if !has("rg") {
				t.Skip("it is not installed")
			}
			c, err := Understand(p.ws, p.root, line)
			require.NoError(t, err)
			leaks := func(env ...string) bool {
				output, _ := p.run(p.root, line, env...)
				return strings.Contains(output, "1234") || strings.Contains(output, "secret.txt")
			}
			require.True(t, leaks(own))
			require.False(t, leaks(append([]string{own}, c.Env...)...))
		})
	}
}

// Where the configuration is overridden, nothing of it runs.
func TestGitEnvironment(t *testing.T) {
	p := newGround(t)
	for _, hook := range []string{"post-index-change", "pre-commit", "post-checkout"} {
		p.write("hooks/"+hook, "#!/bin/sh\necho ran >>\"$OUT/ran\"\n")
		require.NoError(t, os.Chmod(filepath.Join(p.root, "hooks", hook), 0o755))
	}
	p.git(p.root, "config", "core.hooksPath", "hooks")
	require.NoError(t, os.Symlink("../../run.sh", filepath.Join(p.root, ".git", "hooks", "pre-commit")), "which is common")
	p.git(p.root, "config", "core.fsmonitor", "true")
	p.git(p.root, "remote", "add", "origin", "ext::sh run.sh")
	p.write("a.txt", "more\n")
	for _, dir := range []string{p.root, filepath.Join(p.root, "sub")} {
		for _, line := range []string{"git status", "git diff", "git log -p", "git show HEAD"} {
			c, err := Understand(p.ws, dir, line)
			require.NoError(t, err, line)
			output, marked := p.run(dir, line, c.Env...)
			require.False(t, marked, line)
			require.Contains(t, output, "a.txt", line)
		}
	}
	c, err := Understand(p.ws, p.root, "git rev-parse --show-toplevel")
	require.NoError(t, err)
	output, _ := p.run(p.root, "git rev-parse --show-toplevel", c.Env...)
	require.Equal(t, p.root+"\n", output)
}

// What is not completely in the roots, or has other repositories in it, is not understood.
func TestGitElsewhere(t *testing.T) {
	refused := func(p ground, dir string) {
		t.Helper()
		_, err := Understand(p.ws, dir, "git status")
		require.Error(t, err)
	}
	t.Run("above the root", func(t *testing.T) {
		p := newGround(t)
		p.open(filepath.Join(p.root, "sub"))
		refused(p, filepath.Join(p.root, "sub"))
	})
	t.Run("none", func(t *testing.T) {
		p := newGround(t)
		refused(p, p.other)
	})
	t.Run("worktree", func(t *testing.T) {
		p := newGround(t)
		p.git(p.root, "worktree", "add", "-q", filepath.Join(p.top, "tree"))
		p.open(filepath.Join(p.top, "tree"))
		refused(p, filepath.Join(p.top, "tree"))
	})
	t.Run("embedded", func(t *testing.T) { // git takes sub for a repository
		p := newGround(t)
		p.git(p.root, "clone", "-q", "--bare", ".", "bare")
		p.write("bare/config", "\n[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = ../run.sh\n")
		bare := filepath.Join(p.root, "bare")
		_, marked := p.run(bare, "git status")
		require.True(t, marked)
		require.NoError(t, os.Remove(filepath.Join(p.top, "out", "ran")))
		c, err := Understand(p.ws, bare, "git status")
		require.NoError(t, err)
		_, marked = p.run(bare, "git status", c.Env...)
		require.False(t, marked)
	})
	t.Run("submodule", func(t *testing.T) {
		needs.Programs(t, "sed") // git submodule is a script
		p := newGround(t)
		inner := dirtest.New(t, "x", "x\n")
		p.git(inner, "init", "-q")
		p.git(inner, "add", ".")
		p.git(inner, "commit", "-qm", "One")
		p.git(p.root, "submodule", "--quiet", "add", inner, "module")
		refused(p, p.root)
		require.NoError(t, os.RemoveAll(filepath.Join(p.root, ".git", "modules")))
		refused(p, p.root)
	})
	for name, plant := range map[string]func(git string) error{
		"objects":    func(git string) error { return os.Symlink("../../../out", git+"/objects/00") },
		"refs":       func(git string) error { return os.Symlink("../../../out", git+"/refs/x") },
		"link":       func(git string) error { return os.Symlink("../../out", git+"/x") },
		"alternates": func(git string) error { return os.WriteFile(git+"/objects/info/alternates", nil, 0o644) },
		"common":     func(git string) error { return os.WriteFile(git+"/commondir", []byte("/x"), 0o644) },
		"config":     func(git string) error { return os.WriteFile(git+"/config.worktree", nil, 0o644) },
		"split":      func(git string) error { return os.WriteFile(git+"/sharedindex.x", nil, 0o644) },
		"linked git": func(git string) error {
			if err := os.Rename(git, filepath.Dir(git)+"/moved"); err != nil {
				return err
			}
			return os.Symlink("moved", git)
		},
		"file": func(git string) error {
			if err := os.Rename(git, filepath.Dir(git)+"/moved"); err != nil {
				return err
			}
			return os.WriteFile(git, []byte("gitdir: moved\n"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newGround(t)
			_, err := Understand(p.ws, p.root, "git status")
			require.NoError(t, err)
			require.NoError(t, plant(filepath.Join(p.root, ".git")))
			refused(p, p.root)
		})
	}
}

// index returns the path of the index of the root.
func (p ground) index() string { return filepath.Join(p.root, ".git", "index") }

// edit replaces a name in the index by another of the same length, as git itself never writes it.
func (p ground) edit(from, to string) {
	p.t.Helper()
	require.Len(p.t, to, len(from))
	content, err := os.ReadFile(p.index())
	require.NoError(p.t, err)
	require.True(p.t, bytes.Contains(content, []byte(from)), "the index has no %q", from)
	require.NoError(p.t, os.WriteFile(p.index(), bytes.ReplaceAll(content, []byte(from), []byte(to)), 0o600))
}

// track adds a name to the index that has another content than the file outside.
func (p ground) track(name string) {
	p.t.Helper()
	blob, err := exec.CommandContext(p.t.Context(), "git", "-C", p.root, "rev-parse", "HEAD:a.txt").Output()
	require.NoError(p.t, err)
	p.git(p.root, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(blob))+","+name)
}

// Whatever makes git open a file outside is not understood. prints are commands that print it.
func TestIndexLeadsOut(t *testing.T) {
	for name, c := range map[string]struct {
		plant  func(p ground)
		prints []string
	}{
		"above": {func(p ground) {
			p.track("Aa/out/secret.txt")
			p.edit("Aa/out/secret.txt", "../out/secret.txt")
		}, []string{"git diff", "git grep needle", "git diff -- ."}},
		"absolute": {func(p ground) {
			out := filepath.Join(p.top, "out", "secret.txt")
			p.track("a" + out[1:])
			p.edit("a"+out[1:], out)
		}, []string{"git diff", "git grep needle"}},
		"folder that is a link": {func(p ground) {
			p.write("tracked/secret.txt", "x\n")
			p.git(p.root, "add", "tracked")
			p.git(p.root, "commit", "-qm", "Two")
			require.NoError(p.t, os.RemoveAll(filepath.Join(p.root, "tracked")))
			require.NoError(p.t, os.Symlink("../out", filepath.Join(p.root, "tracked")))
		}, []string{"git grep needle"}},
		"folder above that is a link": {func(p ground) {
			p.write("tracked/out/secret.txt", "x\n")
			p.git(p.root, "add", "tracked")
			require.NoError(p.t, os.RemoveAll(filepath.Join(p.root, "tracked")))
			require.NoError(p.t, os.Symlink("..", filepath.Join(p.root, "tracked")))
		}, []string{"git grep needle"}},
		"its own folder": {func(p ground) {
			p.track("agit/config")
			p.edit("agit/config", ".git/config")
		}, []string{"git diff", "git grep core"}},
		"split": {func(p ground) { p.git(p.root, "update-index", "--split-index") }, nil},
		"sparse": {func(p ground) {
			p.git(p.root, "sparse-checkout", "set", "--cone", "--sparse-index", "sub2")
		}, nil},
		"no index": {func(p ground) { require.NoError(p.t, os.WriteFile(p.index(), []byte("DIRX"), 0o600)) }, nil},
		"an empty": {func(p ground) { p.edit("sub/b.txt", "sub//.txt") }, nil},
		"a dot":    {func(p ground) { p.edit("sub2/1.txt", "sub2/./txt") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newGround(t)
			_, err := Understand(p.ws, p.root, "git diff")
			require.NoError(t, err)
			c.plant(p)
			for _, line := range c.prints {
				output, _ := p.run(p.root, line)
				assert.True(t, strings.Contains(output, canary) || strings.Contains(output, "[core]"),
					"%s prints nothing outside here: %s", line, output)
			}
			for _, line := range []string{"git diff", "git grep needle", "git status", "git ls-files", "git log -p"} {
				_, err := Understand(p.ws, p.root, line)
				require.Error(t, err, line)
			}
		})
	}
}

// Variables with which git uses other files are not overlooked.
func TestGitVariables(t *testing.T) {
	p := newGround(t)
	for _, name := range []string{"GIT_INDEX_FILE", "GIT_DIR", "GIT_OBJECT_DIRECTORY"} {
		t.Setenv(name, filepath.Join(p.top, "out"))
		_, err := Understand(p.ws, p.root, "git status")
		require.ErrorContains(t, err, name)
		t.Setenv(name, "")
	}
}
