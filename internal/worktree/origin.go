package worktree

import (
	"os"
	"path/filepath"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

// Origins finds the folders of which others are worktrees. What holds for a folder in a repository
// also holds for the same folder in its worktrees, whoever made them.
//
// A worktree of git names its repository in its file .git, which an agent may have written. So it
// counts only if the repository lists it too. What this program has made is known without git's
// files. The zero Origins knows only what git keeps.
type Origins struct{ sets []Set }

// Origins returns what the registry knows. With an error it has what can be read.
func (r *Registry) Origins() (Origins, error) {
	sets, err := r.List()
	return Origins{sets}, err
}

// Of returns the folder of the main checkout that takes the place of dir, a real path, the zero Dir
// if dir is in no worktree.
func (o Origins) Of(dir workspace.Dir) workspace.Dir {
	at, top := linked(dir)
	for _, s := range o.sets {
		for _, one := range s.Repositories {
			// Neither path is followed, because a link on it may be an agent's.
			path, err := workspace.ParseDir(one.Path)
			if err == nil && path.Contains(dir) && len(one.Path) >= len(at) {
				at, top = one.Path, one.Top
			}
		}
	}
	return movedTo(dir, at, top)
}

// Beside returns the folder that a session in cwd, a real path, uses in the place of folder: its
// worktree, if cwd is in one that was made together with it, else folder.
func (o Origins) Beside(cwd, folder workspace.Dir) workspace.Dir {
	for _, s := range o.sets {
		roots, err := s.Roots()
		if err != nil || !isIn(cwd, roots) {
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

func isIn(dir workspace.Dir, roots workspace.Roots) bool {
	for _, root := range roots.All() {
		if root.Contains(dir) {
			return true
		}
	}
	return false
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

// linked returns the top of the linked worktree that dir, a real path, is in, and the top of the
// main checkout of its repository. Both are "" if it is in none, or if the repository is bare.
func linked(dir workspace.Dir) (top, main string) {
	top, _ = checkoutOf(dir.String())
	own, ok := process.LinkedWorktree(top)
	if !ok {
		return "", ""
	}
	main, common := checkoutOf(filepath.Dir(process.RepositoryOf(own)))
	if !common || filepath.Join(main, ".git") != process.RepositoryOf(own) {
		return "", ""
	}
	return top, main
}

// Listed returns the folder of the main checkout that takes the place of dir in the repository of
// the folder of, according to that repository alone, the zero Dir if it lists no worktree that dir
// is in. It says what dir may not do even if its file .git is forged, but not what it may.
func Listed(of, dir workspace.Dir) workspace.Dir {
	top, main := checkoutOf(workspace.Real(of).String())
	if !main {
		return workspace.Dir{}
	}
	for _, path := range process.LinkedWorktrees(filepath.Join(top, ".git")) {
		if original := movedTo(workspace.Real(dir), path, top); !original.IsZero() {
			return original
		}
	}
	return workspace.Dir{}
}

// Copies returns the folders in linked worktrees that are copies of dir.
func Copies(dir workspace.Dir) (copies []workspace.Dir) {
	real := workspace.Real(dir)
	top, _ := checkoutOf(real.String())
	for _, path := range process.LinkedWorktrees(filepath.Join(top, ".git")) {
		if c := movedTo(real, top, path); !c.IsZero() && (Origins{}).Of(c) == real {
			copies = append(copies, c)
		}
	}
	return copies
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
