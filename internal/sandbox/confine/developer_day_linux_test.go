package confine_test

import (
	"archive/zip"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// project is what a developer works on for a day: files, and the commands between clone and commit.
type project struct {
	files    dirtest.Tree
	programs []string
	commands string
	caches   []string // below the home, which hints suggest, and nothing else
}

func readProject(t *testing.T, name string) project {
	t.Helper()
	read, err := txtar.ParseFile("testdata/days/" + name + ".txtar")
	require.NoError(t, err)
	p := project{files: dirtest.Tree{}}
	for _, f := range read.Files {
		p.files[f.Name] = string(f.Data)
	}
	for line := range strings.Lines(string(read.Comment)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "programs":
			p.programs = strings.Fields(value)
		case "commands":
			p.commands = value
		case "caches":
			p.caches = strings.Fields(value)
		}
	}
	return p
}

// shells are how agents run a command, $1: the files that these shells read when they start belong
// to a developer's home too.
var shells = map[string]string{
	"Claude Code": `bash -c -l 'SNAPSHOT=$TMPDIR/snapshot; source ~/.bashrc </dev/null; alias -p >$SNAPSHOT' && ` +
		`bash -c 'source $TMPDIR/snapshot || true && shopt -u extglob || true && eval "$1" && pwd -P >|$TMPDIR/cwd' sh "$1"`,
	"Codex": `bash -lc "$1"`,
	"Gemini CLI": `bash -c 'shopt -u promptvars nullglob extglob; { eval "$1"; }; code=$?; ` +
		`pgrep -g 0 >$TMPDIR/processes; exit $code;' sh "$1"`,
	"goose":    `sh -c "$1"`,
	"opencode": `bash -c "$1"`,
}

// An ordinary day's commands run in the sandbox. What is denied is explained by hints that help:
// with what they suggest, the commands succeed, and no hint comes twice.
//
// Clauses X1, X8.
func TestDeveloperDay(t *testing.T) {
	agents, next := slices.Sorted(maps.Keys(shells)), 0
	for _, name := range []string{"Go", "Node", "Python", "Rust"} {
		p, cache := readProject(t, name), dirtest.New(t) // so that it is filled once
		for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			agent := agents[next%len(agents)] // over all days each has one
			next++
			t.Run(name+" "+mode.String()+" by "+agent, func(t *testing.T) {
				for _, program := range append(p.programs, "git", "bash") {
					if _, err := exec.LookPath(program); err != nil {
						needs.Missing(t, program, "this day is not tried")
					}
				}
				newDay(t, p, mode, cache, agent).work(p)
			})
		}
	}
}

// The shells of agents say nothing about the sandbox when they start.
//
// Clause X8.
func TestShellsOfAgents(t *testing.T) {
	needs.Programs(t, "bash")
	for agent, shell := range shells {
		for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			t.Run(agent+" "+mode.String(), func(t *testing.T) {
				d := newDay(t, readProject(t, "Go"), mode, "", agent)
				said, _, err := d.do("echo $GREETING; git -C source log -1 --format=%s")
				require.NoError(t, err)
				require.NotContains(t, said, "denied")
				require.Contains(t, said, "first")
				require.Equal(t, strings.Contains(shell, "bash -lc"), strings.Contains(said, "hello"), said)
			})
		}
	}
}

// day is a developer's home, and a folder with a remote repository and a clone.
type day struct {
	*developer
	env   []string
	cache string // to which what hints suggest is a link
	shell string
}

func newDay(t *testing.T, p project, mode sandbox.Mode, cache, agent string) *day {
	path, home := os.Getenv("PATH"), os.Getenv("HOME")
	d := &day{developer: newDeveloper(t), cache: cache, shell: shells[agent]}
	if rustup, err := os.ReadFile(filepath.Join(home, ".cargo/bin/rustup")); err == nil {
		d.write(".cargo/bin/rustup", "#!")
		require.NoError(t, os.WriteFile(filepath.Join(d.home, ".cargo/bin/rustup"), rustup, 0o700))
		d.link("rustup", ".cargo/bin/cargo")
		d.link("rustup", ".cargo/bin/rustc")
		d.link(filepath.Join(home, ".rustup"), ".rustup")
	}
	t.Setenv("PATH", filepath.Join(d.home, ".cargo/bin")+":"+path)
	t.Setenv("HOME", d.home)
	d.settings.Mode = mode
	d.write(".bash_profile", "export GREETING=hello\n[ -s ~/.nvm/nvm.sh ] && . ~/.nvm/nvm.sh\n. ~/.cargo/env\n. ~/.bashrc\n")
	d.write(".bashrc", "alias ll='ls -l'\n. ~/.bash_login\n")
	d.write(".bash_login", "alias la='ls -A'\n")
	d.write(".nvm/nvm.sh", "export NVM_DIR=~/.nvm\n")
	d.write(".cargo/env", "export PATH='"+os.Getenv("PATH")+"'\n")
	d.write(".gitconfig", "[user]\n\tname = n\n[include]\n\tpath = ~/.config/git/work\n[core]\n\texcludesFile = ~/.config/git/ignore\n")
	d.write(".config/git/work", "[user]\n\temail = e@example.com\n[pull]\n\trebase = true\n")
	d.write(".config/git/ignore", "*.swp\n")
	d.env = []string{"HOME=" + d.home, "TMPDIR=" + dirtest.New(t),
		"PYENV_ROOT=" + home + "/.pyenv", "GOFLAGS=", "GOCACHE=", "GOPROXY=off", "CGO_ENABLED=0"}
	source := filepath.Join(d.project, "source")
	p.files.PlantIn(t, source)
	d.wheel(filepath.Join(d.project, "dep-1.0-py3-none-any.whl"))
	for _, args := range [][]string{{"init", "-q", "-b", "main", source}, {"-C", source, "add", "."},
		{"-C", source, "commit", "-q", "-m", "first"}, {"clone", "-q", "--bare", source, d.project + "/remote"}} {
		git(t, d.project, args...)
	}
	return d
}

// wheel writes a package of Python.
func (d *day) wheel(path string) {
	f, err := os.Create(path)
	require.NoError(d.t, err)
	defer f.Close()
	w := zip.NewWriter(f)
	for name, text := range map[string]string{"dep.py": "one = 1\n",
		"dep-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n",
		"dep-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"dep-1.0.dist-info/RECORD":   "",
	} {
		entry, err := w.Create(name)
		require.NoError(d.t, err)
		_, err = entry.Write([]byte(text))
		require.NoError(d.t, err)
	}
	require.NoError(d.t, w.Close())
}

// work does the day's work, and follows the hints.
func (d *day) work(p project) {
	script := "rm -rf app && git clone -q remote app && cd app && " + p.commands +
		" && git switch -q -c topic && echo x >new && git add -A && git commit -q -m second" +
		" && git fetch -q && git rebase -q origin/main && git push -q origin topic && git switch -q main" +
		" && git merge -q topic && git branch -q -d topic && git push -q origin main :topic"
	var followed []string
	for {
		said, policy, err := d.do(script)
		explanation, grant := confine.ExplainDenial(policy, said, "the agent", "agents.x")
		if explanation == "" {
			require.NoError(d.t, err, "failed without a hint: %s", said)
			break
		}
		rel, failed := filepath.Rel(d.home, grant)
		require.NoError(d.t, failed)
		require.NotContains(d.t, followed, rel, "it was followed: %s: %s", explanation, said)
		require.Contains(d.t, explanation, "add `"+grant+"` to `sandboxWrite`", said)
		followed = append(followed, rel)
		d.link(d.cache, rel)
		d.settings.Write = append(d.settings.Write, grant)
	}
	require.Equal(d.t, p.caches, followed)
	require.Equal(d.t, "second", git(d.t, d.project, "-C", d.project+"/remote", "log", "-1", "--format=%s", "main"))
}

// do runs a script in the sandbox, and returns what it said.
func (d *day) do(script string) (string, sandbox.Policy, error) {
	d.t.Helper()
	c, err := confine.Command(process.Command{Path: "/bin/sh", Dir: d.project, Env: slices.Clone(d.env),
		Args: []string{"-c", "exec 2>&1; " + d.shell, "sh", script},
	}, d.settings, roottest.Open(d.t, d.project).Opened())
	require.NoError(d.t, err)
	c.Batch = true
	text, err := process.Output(d.t.Context(), c)
	if exit := (*process.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(d.t, err)
	}
	return strings.TrimSpace(string(text)), c.Sandbox, err
}
