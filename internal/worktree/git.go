package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxTime limits how long git may take for one command, and maxOutput the bytes that it may print.
const (
	maxTime   = 10 * time.Minute
	maxOutput = 64 << 20
)

// oldest is the first version of git that has everything that is needed here.
var oldest = [2]int{2, 36}

// git runs git in a directory. Git reads the configuration of the repository there, which an agent
// may have written, so everything in it that names a program is overridden.
type git struct {
	dir    string
	writes []string // the directories that it may change; nil for a command that only reads

	settings []setting // override the configuration of the repository
	filters  []setting // turn off the filters that the user has configured
	env      []string
	stdin    string
}

// setting is a value of git's configuration.
type setting struct{ key, value string }

// always are the settings that override those of every repository.
var always = []setting{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.untrackedCache", "false"},
	{"core.pager", "cat"},
	{"diff.submodule", "short"},
	{"log.showSignature", "false"},
	{"status.submoduleSummary", "false"},
	{"submodule.recurse", "false"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
}

// guarded is the environment for repositories whose configuration is overridden.
var guarded = []string{"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	"GIT_LFS_SKIP_SMUDGE=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"}

// plain makes git say what is looked for here.
var plain = []string{"LC_ALL=C"}

// Environment returns the environment for a command of the user that looks at the checkout at top,
// where .git is a directory: the repository chooses no program, and no other one is used.
func Environment(top string) []string {
	return git{env: slices.Concat(guarded, []string{"GIT_PAGER=cat", "GIT_DIR=" + top + "/.git",
		"GIT_WORK_TREE=" + top}), settings: always}.variables()
}

// Inspect returns what a command of git prints that looks at the checkout at top, and neither at
// the content of files nor at other repositories.
func Inspect(top string, args ...string) (string, error) {
	g := git{dir: top, settings: always, env: slices.Concat(plain, guarded,
		[]string{"GIT_DIR=" + top + "/.git", "GIT_WORK_TREE=" + top})}
	return g.output(context.Background(), args...)
}

// newGit returns how git runs in dir, with env. It reads the names of all filters and hooks of the
// configuration, to turn them off. Filters that the user has configured stay on, except in new
// worktrees: without them, git takes a file that was only touched for a changed one.
func newGit(ctx context.Context, dir string, env ...string) (git, error) {
	g := git{dir: dir, settings: always, env: slices.Concat(plain, guarded, env)}
	names, err := g.output(ctx, "config", "--null", "--show-scope", "--name-only", "--get-regexp",
		`^(filter|hook)\.`)
	if exit, ok := errors.AsType[*process.ExitError](err); ok && exit.Code == 1 {
		return g, nil // no filters and hooks
	}
	if err != nil {
		return g, err
	}
	g.settings = slices.Clone(always)
	scope := ""
	for i, key := range strings.Split(names, "\x00") {
		at := strings.LastIndexByte(key, '.')
		if i%2 == 0 || at < 0 {
			scope = key
			continue
		}
		switch prefix := key[:at+1]; {
		case strings.Count(key, ".") < 2: // it has no name, and no effect
		case strings.HasPrefix(key, "filter."):
			off := []setting{{prefix + "smudge", ""}, {prefix + "clean", ""},
				{prefix + "process", ""},
				{prefix + "required", "false"}}
			if scope == "global" || scope == "system" {
				g.filters = append(g.filters, off...)
			} else {
				g.settings = append(g.settings, off...)
			}
		default:
			g.settings = append(g.settings, setting{prefix + "enabled", "false"},
				setting{prefix + "command", "true"})
		}
	}
	return g, nil
}

// unfiltered returns g for commands that check files out.
func (g git) unfiltered() git {
	g.settings = slices.Concat(g.settings, g.filters)
	return g
}

// unapplied returns the names of the filters that new worktrees lack, sorted.
func (g git) unapplied() []string {
	var names []string
	for _, s := range g.unfiltered().settings {
		if name, ok := strings.CutPrefix(s.key, "filter."); ok &&
			strings.HasSuffix(name, ".smudge") {
			names = append(names, strings.TrimSuffix(name, ".smudge"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writing returns g for commands that may change the directories, and nothing else where the system
// has a sandbox.
func (g git) writing(dirs ...string) git {
	g.writes = dirs
	return g
}

// line runs git and returns what it printed without the last line feed.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.output(ctx, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// changes returns the entries of what is not committed, each ended by NUL. Files that git does not
// know count, but not what has changed in submodules.
func (g git) changes(ctx context.Context) (string, error) {
	return g.output(ctx, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
		"--ignore-submodules=dirty")
}

// output runs git and returns what it printed. If git ends with a status other than 0 the error is
// a [*process.ExitError].
func (g git) output(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime,
		fmt.Errorf("git %s took longer than %v", args[0], maxTime))
	defer cancel()
	command, err := g.command(args)
	if err != nil {
		return "", err
	}
	out, stderr, err := process.Exchange(ctx, command, []byte(g.stdin), maxOutput+1)
	switch exit, failed := errors.AsType[*process.ExitError](err); {
	case failed:
		exit.Name, exit.Stderr = "git "+args[0], stderr
		return "", exit
	case err == nil && len(out) > maxOutput:
		err = fmt.Errorf("git %s prints more than %s", args[0], text.Size(maxOutput))
	}
	return string(out), err
}

// isOutside reports whether git says that its directory is in no repository.
func isOutside(err error) bool {
	exit, ok := errors.AsType[*process.ExitError](err)
	return ok && len(exit.Stderr) > 0 &&
		strings.HasPrefix(exit.Stderr[0], "fatal: not a git repository (or any")
}

// command returns the command line, environment and sandbox of git.
func (g git) command(args []string) (process.Command, error) {
	c := process.Command{Path: "git", Args: append([]string{"--no-pager"}, args...), Dir: g.dir,
		Base: environment(), Env: g.variables()}
	if g.writes == nil {
		return c, nil
	}
	restriction := sandbox.Settings{Mode: sandbox.Write, Optional: true,
		Ports: hosts.Ports{Limited: true}}
	if restriction.Available() != nil {
		restriction.Ports = hosts.Ports{}
	}
	var roots []workspace.Root
	for _, path := range g.writes {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return c, err
		}
		roots = append(roots, workspace.Root{Dir: dir, Real: dir})
	}
	return confine.Command(c, restriction, roots)
}

// variables returns what git gets besides our environment.
func (g git) variables() []string {
	env := append(slices.Clone(g.env), "GIT_CONFIG_COUNT="+strconv.Itoa(len(g.settings)))
	for i, s := range g.settings { // not -c, which cannot express every name
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// environment returns our environment without what changes which repository git works on or how.
func environment() []string {
	kept := []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
		"GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
		"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name)
	})
}

// checkVersion returns an error if git is missing or too old.
func checkVersion(ctx context.Context) error {
	said, err := git{}.line(ctx, "version")
	if err != nil {
		return fmt.Errorf("worktrees need git: %w", err)
	}
	var v [2]int
	if _, err := fmt.Sscanf(said, "git version %d.%d", &v[0], &v[1]); err != nil ||
		slices.Compare(v[:], oldest[:]) < 0 {
		return fmt.Errorf("worktrees need git %d.%d or newer, and this is %s", oldest[0], oldest[1],
			text.Line(said, 100))
	}
	return nil
}

// nativePath returns a path that git printed as the system writes it.
func nativePath(path string) string { return filepath.Clean(filepath.FromSlash(path)) }
