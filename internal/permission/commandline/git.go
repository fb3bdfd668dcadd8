package commandline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// git runs programs that the configuration of a repository names, when it only shows something:
// fsmonitor, hooks, filters, converters, pagers, gpg, and what fetches missing objects. And it
// reads what that configuration says lies elsewhere. So a command for git is understood only in a
// repository that lies in the roots and whose configuration is known, and runs with
// [worktree.Environment].

const (
	// maxGitFolders is the maximum number of directories in .git, and of those with tracked files.
	maxGitFolders = 10_000
	// maxDepth is how far above a directory a repository is searched for.
	maxDepth = 64
)

var errForeign = errors.New("the repository refers to others, or to places outside")

// repository is what a command of git uses.
type repository struct {
	top     string
	tracked []string // the files
	// bare says why git without [worktree.Environment] could use another repository, or run a
	// program of this one, nil if it could not.
	bare error
}

// examine returns the repository for commands in dir. It returns an error if that is not completely
// in the roots, has submodules, linked worktrees of others or files that lead elsewhere, or has a
// configuration that is not known.
func examine(ws *workspace.Workspace, dir string) (r repository, err error) {
	for name := range strings.FieldsSeq(set("@git-elsewhere")) {
		if os.Getenv(name) != "" {
			return r, errors.New(name + " is set")
		}
	}
	if err := r.find(ws, dir); err != nil {
		return r, err
	}
	if err := checkGitDir(ws, r.top+"/.git"); err != nil {
		return r, err
	}
	hooks, err := checkGitConfig(r.top)
	if err != nil {
		return r, err
	}
	const hook = "post-index-change" // runs after the index was refreshed to show something
	if _, err := ws.Lstat(r.top + "/.git/hooks/" + hook); !errors.Is(err, fs.ErrNotExist) || hooks {
		r.bare = errors.New("the repository may have the hook " + hook)
	}
	r.tracked, err = trackedFiles(ws, r.top)
	return r, err
}

// find finds the directory with .git, which must be a directory itself. One on the way there may be
// a repository for git.
func (r *repository) find(ws *workspace.Workspace, dir string) error {
	for range maxDepth {
		info, err := ws.Lstat(dir + "/.git")
		switch {
		case err == nil && info.Mode().IsDir():
			r.top = dir
			return ws.HandOverDir(dir + "/.git")
		case err == nil:
			return errForeign
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if _, err := ws.Lstat(dir + "/HEAD"); !errors.Is(err, fs.ErrNotExist) {
			r.bare = errForeign
		}
		parent, err := ws.Stat(dir + "/..")
		if err != nil {
			return err
		}
		dir = parent.Ref().Path()
	}
	return errForeign
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

// checkGitConfig returns an error unless all keys of the configuration are in the table. hooks says
// that it names a folder of hooks.
func checkGitConfig(top string) (hooks bool, err error) {
	said, err := worktree.Inspect(top, "config", "--file", top+"/.git/config", "--null", "--list")
	for entry := range strings.SplitSeq(strings.TrimSuffix(said, "\x00"), "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		if first, last := strings.Index(key, "."), strings.LastIndex(key, "."); first < last {
			key = key[:first] + ".*" + key[last:]
		}
		hooks = hooks || key == "core.hookspath"
		if entry != "" && !isGitConfig(key, value) {
			return hooks, errors.New("the configuration of the repository is not understood")
		}
	}
	return hooks, err
}

func isGitConfig(key, value string) bool {
	bools := []string{"true", "false", "yes", "no", "on", "off", "1", "0", ""}
	for item := range strings.FieldsSeq(set("@git-config")) {
		pattern, isBool := strings.CutSuffix(item, "=BOOL")
		if matches, _ := path.Match(pattern, key); matches {
			return !isBool || slices.Contains(bools, strings.ToLower(value))
		}
	}
	return false
}

// trackedFiles returns the names of the files that git tracks in the repository at top. It returns
// an error if one is a submodule, or may be opened somewhere else than in top: git takes the names
// as they are, diff prints ../x if there is an entry of that name, and grep follows a link that has
// replaced a folder. git itself writes no such names, but whoever made the repository may have.
func trackedFiles(ws *workspace.Workspace, top string) (names []string, err error) {
	staged, err := worktree.Inspect(top, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(staged, "\x00"), "\x00") {
		if entry == "" { // nothing was added yet
			continue
		}
		mode, name, _ := strings.Cut(entry, "\t")
		if !isTracked(mode, name) {
			return nil, errForeign
		}
		names = append(names, name)
	}
	return names, checkTracked(ws, top, names)
}

// isTracked reports whether an entry is a file or a link in the folder of the repository, and no
// submodule.
func isTracked(mode, name string) bool {
	return (strings.HasPrefix(mode, "100") || strings.HasPrefix(mode, "120")) && name != "." &&
		fs.ValidPath(name) && !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return strings.EqualFold(part, ".git")
	})
}

// checkTracked returns an error if a folder with tracked files is a link now.
func checkTracked(ws *workspace.Workspace, top string, tracked []string) error {
	seen := map[string]bool{".": true}
	for _, name := range tracked {
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if len(seen) > maxGitFolders {
				return fmt.Errorf("the repository has files in more than %d folders", maxGitFolders)
			}
			info, err := ws.Lstat(top + "/" + dir)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case info.Mode()&fs.ModeSymlink != 0:
				return errForeign
			}
		}
	}
	return nil
}
