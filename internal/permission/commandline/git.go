package commandline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// git runs programs that the configuration of a repository names, when it only shows something:
// fsmonitor, hooks, filters, converters, pagers, gpg, and what fetches missing objects. And it
// reads what that configuration says lies elsewhere. So a command for git is understood only in a
// repository that lies in the roots and whose configuration is known, and runs with gitEnv.

// gitSettings override what a repository may set although it can name a program, and turn off what
// may be set outside the repository but depends on it.
var gitSettings = []string{
	"core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.submodule=short",
	"log.showSignature=false", "status.submoduleSummary=false", "submodule.recurse=false",
}

// gitEnv returns the environment for a command in the repository at top.
func gitEnv(top string) []string {
	env := []string{
		"GIT_DIR=" + top + "/.git", "GIT_WORK_TREE=" + top, // nothing else is searched for
		"GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", // no pager, and no hook after an update of the index
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(gitSettings)),
	}
	for i, setting := range gitSettings {
		key, value, _ := strings.Cut(setting, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}

const (
	maxGitConfig = 1 << 20
	// maxGitFolders is the maximum number of directories in .git, and of those with tracked files.
	maxGitFolders = 10_000
	// maxDepth is how far above a directory a repository is searched for.
	maxDepth = 64
)

var errForeign = errors.New("the repository refers to others, or to places outside")

// repository completes a command of git. It returns an error if the repository is not completely in
// the roots, has submodules, linked worktrees of others or files that lead elsewhere, or has a
// configuration that is not known.
func repository(r *reader, c *Command) error {
	for name := range strings.FieldsSeq(set("@git-elsewhere")) {
		if os.Getenv(name) != "" {
			return errors.New(name + " is set")
		}
	}
	top, err := topOf(r.ws, r.dir)
	if err != nil {
		return err
	}
	for _, check := range []func(*workspace.Workspace, string) error{checkGitDir, checkGitConfig} {
		if err := check(r.ws, top+"/.git"); err != nil {
			return err
		}
	}
	tracked, err := trackedFiles(r.ws, top)
	if err != nil {
		return err
	}
	c.Env, c.Bare = gitEnv(top), checkBare(r.ws, r.dir, top)
	c.Reads = r.gitReads(c.Rule[1], top, tracked)
	return nil
}

// checkBare returns an error if git without [gitEnv] could use another repository, in a directory
// on the way from dir to top, or run a program of the repository at top: a hook, which a command
// that only shows something runs after it has refreshed the index.
func checkBare(ws *workspace.Workspace, dir, top string) error {
	for dir != top {
		if _, err := ws.Lstat(dir + "/HEAD"); !errors.Is(err, fs.ErrNotExist) {
			return errForeign
		}
		parent, err := ws.Stat(dir + "/..")
		if err != nil {
			return err
		}
		dir = parent.Ref().Path()
	}
	const hook = "post-index-change"
	git := top + "/.git"
	if _, err := ws.Lstat(git + "/hooks/" + hook); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the repository may have the hook " + hook)
	}
	config, err := readAll(ws, git+"/config", maxGitConfig)
	if err == nil && bytes.Contains(bytes.ToLower(config), []byte("hookspath")) {
		err = errors.New("the configuration of the repository names a folder of hooks")
	}
	return err
}

// topOf returns the directory with .git, which must be a directory itself.
func topOf(ws *workspace.Workspace, dir string) (string, error) {
	for range maxDepth {
		info, err := ws.Lstat(dir + "/.git")
		switch {
		case err == nil && info.Mode().IsDir():
			return dir, ws.HandOverDir(dir + "/.git")
		case err == nil:
			return "", errForeign
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		parent, err := ws.Stat(dir + "/..")
		if err != nil {
			return "", err
		}
		dir = parent.Ref().Path()
	}
	return "", errForeign
}

// checkGitDir looks at the names in the directory of a repository and below it. Through a link
// there git would read objects of another repository, or print any file as a part of a rebase.
// Links to hooks are common, and hooks do not run.
func checkGitDir(ws *workspace.Workspace, git string) error {
	o := workspace.WalkOptions{Exclude: func(in *workspace.Folder, e workspace.Entry) bool {
		return e.Name == "hooks" && path.Base(in.Ref().Path()) == ".git"
	}}
	folders := 0
	return ws.Walk(context.Background(), git, o, func(f *workspace.Folder) func() error {
		err := checkGitFolder(f)
		return func() error {
			if folders++; folders > maxGitFolders && err == nil {
				err = fmt.Errorf("the repository has more than %d folders", maxGitFolders)
			}
			return err
		}
	})
}

func checkGitFolder(f *workspace.Folder) error {
	var elsewhere []string
	switch dir := f.Ref().Path(); {
	case path.Base(dir) == ".git":
		elsewhere = []string{"modules", "commondir", "config.worktree"}
	case path.Base(dir) == "info":
		elsewhere = []string{"alternates", "http-alternates"}
	}
	for _, e := range f.Entries {
		if e.Type&(fs.ModeSymlink|fs.ModeNamedPipe) != 0 || slices.Contains(elsewhere, e.Name) ||
			strings.HasPrefix(e.Name, "sharedindex.") {
			return errForeign
		}
	}
	return f.Err
}

const (
	gitSection = `^\[([A-Za-z]+)( "[^"\\]*")?\]$`
	gitKey     = `^([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*([^\\]*))?$`
	gitBool    = `(?i)^(true|false|yes|no|on|off|1|0|)$`
)

// checkGitConfig returns an error unless all keys of the configuration are in the table. Lines that
// git itself writes are understood, not everything that git reads.
func checkGitConfig(ws *workspace.Workspace, git string) error {
	content, err := readAll(ws, git+"/config", maxGitConfig)
	if err != nil {
		return err
	}
	sections, keys := regexp.MustCompile(gitSection), regexp.MustCompile(gitKey)
	section := ""
	for line := range strings.SplitSeq(string(content), "\n") {
		line = strings.Trim(line, " \t")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := sections.FindStringSubmatch(line); m != nil {
			section = m[1]
			if m[2] != "" {
				section += ".*"
			}
			continue
		}
		m := keys.FindStringSubmatch(line)
		if m == nil || !isGitConfig(strings.ToLower(section+"."+m[1]), m[2]) {
			return errors.New("the configuration of the repository is not understood")
		}
	}
	return nil
}

func isGitConfig(key, value string) bool {
	for item := range strings.FieldsSeq(set("@git-config")) {
		pattern, isBool := strings.CutSuffix(item, "=BOOL")
		if matches, _ := path.Match(pattern, key); matches {
			return !isBool || regexp.MustCompile(gitBool).MatchString(value)
		}
	}
	return false
}

func readAll(ws *workspace.Workspace, name string, limit int64) ([]byte, error) {
	f, err := ws.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s is too large", name)
	}
	return content, err
}
