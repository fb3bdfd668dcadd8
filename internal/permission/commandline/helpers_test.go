package commandline

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// canary is the content of a file outside the roots.
const canary = "canary needle 1234"

// ground is a directory with a root, which is a repository, and a directory outside.
type ground struct {
	t                testing.TB
	top, root, other string
	ws               *workspace.Workspace
}

// newGround creates a place. Its root has files, a script that leaves a mark outside, and links that
// lead out.
func newGround(t testing.TB) ground {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	top := dirtest.New(t,
		"root/a.txt", "a needle\n", "root/sub/b.txt", "b needle\n", "root/sub2/1.txt", "\n",
		"root/go.mod", "module x\n", "root/x.go", "package x\n", "root/x_test.go", "package x\n",
		"root/Makefile", "check:\n\t@echo checked\n", "root/package.json", `{"scripts":{"test":"true"}}`,
		"root/run.sh", "#!/bin/sh\necho ran >>\"$OUT/ran\"\n",
		"other/o.txt", "o needle\n", "root-evil/e.txt", canary+"\n", "out/secret.txt", canary+"\n")
	p := ground{t: t, top: top, root: filepath.Join(top, "root"), other: filepath.Join(top, "other")}
	require.NoError(t, os.Symlink("../out/secret.txt", filepath.Join(p.root, "link")))
	require.NoError(t, os.Symlink("../../out/secret.txt", filepath.Join(p.root, "sub", "1.txt")))
	require.NoError(t, os.Symlink("../out", filepath.Join(p.root, "linkdir")))
	require.NoError(t, os.Chmod(filepath.Join(p.root, "run.sh"), 0o755))
	p.commit()
	p.open(p.root, p.other)
	return p
}

// committed holds the .git directory of the first place, which is copied for the others.
var committed = fstest.MapFS{}

// commit makes the root a repository with a commit of all files.
func (p ground) commit() {
	p.t.Helper()
	dir := filepath.Join(p.root, ".git")
	if len(committed) > 0 {
		require.NoError(p.t, os.CopyFS(dir, committed))
		return
	}
	p.git(p.root, "init", "-q", "--template=")
	for _, empty := range []string{"info", "hooks"} {
		require.NoError(p.t, os.Mkdir(filepath.Join(dir, empty), 0o700))
	}
	p.git(p.root, "add", ".")
	p.git(p.root, "commit", "-qm", "One")
	made := os.DirFS(dir)
	require.NoError(p.t, fs.WalkDir(made, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			committed[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o700}
			return err
		}
		content, err := fs.ReadFile(made, name)
		committed[name] = &fstest.MapFile{Data: content, Mode: 0o600}
		return err
	}))
}

func (p *ground) open(cwd string, additional ...string) {
	p.t.Helper()
	p.ws = roottest.Open(p.t, cwd, additional...)
}

func (p ground) git(dir string, args ...string) {
	p.t.Helper()
	args = append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com",
		"-c", "protocol.file.allow=always"}, args...)
	cmd := exec.CommandContext(p.t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

// line fills in the paths of a command line.
func (p ground) line(line string) string {
	return strings.NewReplacer("{out}", filepath.Join(p.top, "out"), "{top}", p.top,
		"{root}", p.root, "{other}", p.other).Replace(line)
}

// run runs a line with the shell and returns what it prints and whether it had an effect outside.
func (p ground) run(dir, line string, env ...string) (output string, marked bool) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "/bin/sh", "-c", line)
	cmd.Dir = dir
	out := filepath.Join(p.top, "out")
	cmd.Env = append(os.Environ(), "OUT="+out, "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+p.top)
	cmd.Env = append(cmd.Env, env...)
	printed, _ := cmd.CombinedOutput()
	require.NoError(p.t, p.t.Context().Err())
	entries, err := os.ReadDir(out)
	require.NoError(p.t, err)
	secret, err := os.ReadFile(filepath.Join(out, "secret.txt"))
	return string(printed), len(entries) != 1 || err != nil || string(secret) != canary+"\n"
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// isRule reports whether a rule with these words allows anything.
func isRule(rule []string) bool {
	_, n := find(rule)
	return n > 0 && n == len(rule)
}
