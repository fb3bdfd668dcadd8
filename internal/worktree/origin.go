package worktree

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Origins finds the folders of which others are worktrees. What holds for a folder in a repository
// also holds for the same folder in its worktrees, whoever made them.
//
// A worktree of git names its repository in its file .git, which an agent may have written. So it
// counts only if the repository lists it too. What this program has made is known without git's
// files. The zero Origins knows only what git keeps.
type Origins struct{ tasks []Task }

// Origins returns what the registry has recorded. With an error it has what can be read.
func (r *Registry) Origins() (o Origins, failed error) {
	if r == nil {
		return o, nil
	}
	for s, err := range r.All() { // not followed, because git's files may be an agent's
		failed = cmp.Or(failed, err)
		if err == nil {
			o.tasks = append(o.tasks, s)
		}
	}
	return o, failed
}

// Of returns the folders in whose place dir is, a real path: that in the main checkout, or, if the
// repository is bare, those in its other worktrees. It returns nil if dir is not in a worktree.
func (o Origins) Of(dir workspace.Dir) (originals []workspace.Dir) {
	at, tops := linked(dir)
	for _, s := range o.tasks {
		for _, one := range s.Repositories {
			// Neither path is followed, because a link on it may be an agent's.
			path, err := workspace.ParseDir(one.Path)
			if err == nil && path.Contains(dir) && len(one.Path) >= len(at) {
				at, tops = one.Path, []string{one.Top}
			}
		}
	}
	for _, top := range tops {
		if original := movedTo(dir, at, top); !original.IsZero() && top != at {
			originals = append(originals, original)
		}
	}
	return originals
}

// Beside returns the folder that a session in cwd, a real path, uses in the place of folder: its
// worktree, if cwd is in one that was made together with it, else folder.
func (o Origins) Beside(cwd, folder workspace.Dir) workspace.Dir {
	for _, s := range o.tasks {
		has := func(f Folder) bool { return !movedTo(cwd, f.Path, f.Path).IsZero() }
		if !slices.ContainsFunc(s.Folders, has) {
			continue
		}
		for _, f := range s.Folders {
			if moved := movedTo(folder, f.Original, f.Path); !moved.IsZero() {
				return moved
			}
		}
	}
	return folder
}

// movedTo returns dir with its beginning from replaced by to, the zero Dir if it is not below from.
func movedTo(dir workspace.Dir, from, to string) workspace.Dir {
	before, err := workspace.ParseDir(from)
	after, failed := workspace.ParseDir(to)
	if moved, below := dir.Moved(before, after); below && err == nil && failed == nil {
		return moved
	}
	return workspace.Dir{}
}

// linked returns the top of the linked worktree that dir, a real path, is in, and the tops of the
// checkouts that [Origins.Of] looks in.
func linked(dir workspace.Dir) (top string, others []string) {
	top, _ = checkoutOf(dir.String())
	own, ok := confine.LinkedWorktree(top)
	if !ok {
		return "", nil
	}
	repository := confine.RepositoryOf(own)
	if isBare(repository) {
		return top, slices.DeleteFunc(confine.LinkedWorktrees(repository), func(other string) bool {
			own, ok := confine.LinkedWorktree(other)
			return !ok || confine.RepositoryOf(own) != repository
		})
	}
	if main, has := checkoutOf(filepath.Dir(repository)); has &&
		filepath.Join(main, ".git") == repository {
		return top, []string{main}
	}
	return "", nil
}

var bare = text.Pattern(`(?im)^\s*bare\s*=\s*(true|yes|on|1)\s*$`)

// isBare reports whether a repository, which has worktrees, has no main checkout.
func isBare(repository string) bool {
	config, err := os.ReadFile(filepath.Join(repository, "config"))
	return err == nil && bare().Match(config)
}

// OriginNote returns what the setting of a folder says besides if it was declared for original, of
// which the working directory is a worktree.
func OriginNote(original workspace.Dir) string {
	return ", folders of " + text.Printable(original.String()) + ", of which this is a worktree"
}

// Listed returns the folder that dir is a copy of according to the repository of the folder of
// alone, the zero Dir if that lists no worktree that dir is in. It says what dir may not do even if
// its file .git is forged, but not what it may.
func Listed(of, dir workspace.Dir) workspace.Dir {
	top, repository := repositoryOf(workspace.Real(of))
	for _, path := range confine.LinkedWorktrees(repository) {
		if original := movedTo(workspace.Real(dir), path, top); !original.IsZero() {
			return original
		}
	}
	return workspace.Dir{}
}

// Copies returns the folders in linked worktrees that are copies of dir.
func Copies(dir workspace.Dir) (copies []workspace.Dir) {
	real := workspace.Real(dir)
	top, repository := repositoryOf(real)
	for _, path := range confine.LinkedWorktrees(repository) {
		if c := movedTo(real, top, path); !c.IsZero() && slices.Contains(Origins{}.Of(c), real) {
			copies = append(copies, c)
		}
	}
	return copies
}

// repositoryOf returns the top of the checkout that dir is in, and its repository if others are
// copies of it: if it is the main checkout, or the repository is bare.
func repositoryOf(dir workspace.Dir) (top, repository string) {
	top, main := checkoutOf(dir.String())
	if own, ok := confine.LinkedWorktree(top); ok && isBare(confine.RepositoryOf(own)) {
		return top, confine.RepositoryOf(own)
	}
	if !main {
		return "", ""
	}
	return top, filepath.Join(top, ".git")
}

// checkoutOf returns the top of the checkout that a folder is in, "" if it is in none, and reports
// whether the repository is in it.
func checkoutOf(path string) (top string, main bool) {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(at, ".git"))
		switch {
		case err == nil:
			return at, info.IsDir()
		case at == filepath.Dir(at):
			return "", false
		}
	}
}
