package workspace

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

// IgnoredDirs knows which directories of a root git ignores. It is for one goroutine.
type IgnoredDirs struct {
	wk    *walk
	root  int
	known map[string]gitDir
}

// gitDir holds git's answers about a directory.
type gitDir struct {
	ignored string             // the first directory on the way to it that git ignores, or ""
	rules   *gitignore.Matcher // if that is ""
}

// IgnoredDirs returns what git says of the directories of a root. A root itself is never ignored.
func (w *Workspace) IgnoredDirs(root Root) *IgnoredDirs {
	return newWalk(w, context.Background(), WalkOptions{}, nil).dirsOf(root.Index)
}

func (wk *walk) dirsOf(root int) *IgnoredDirs {
	return &IgnoredDirs{wk: wk, root: root, known: make(map[string]gitDir)}
}

// First returns the first directory on the way from the root to the directory rel, and rel itself,
// that git ignores, or of which git ignores everything. Both are slash-separated from the root. It
// returns "" if git ignores none of them.
func (g *IgnoredDirs) First(rel string) string {
	if g.wk.w.begin() != nil {
		return ""
	}
	defer g.wk.w.end()
	return g.dir(rel).ignored
}

func (g *IgnoredDirs) dir(rel string) gitDir {
	if _, known := g.known[rel]; !known {
		g.known[rel] = g.look(rel)
	}
	return g.known[rel]
}

// look reads the rules of a directory. One that cannot be read has none.
func (g *IgnoredDirs) look(rel string) gitDir {
	var outer *gitignore.Matcher
	if rel == "." {
		outer = g.wk.rulesAboveRoot(g.root)
	} else {
		parent := g.dir(path.Dir(rel))
		if parent.ignored != "" {
			return parent
		}
		outer = parent.rules
		if outer.Match(path.Base(rel), gitignore.Directory) == gitignore.Ignored {
			return gitDir{ignored: rel}
		}
	}
	none := gitDir{rules: gitignore.NewMatcher()}
	at, err := parse(filepath.Join(g.wk.w.opened[g.root].Dir.path, filepath.FromSlash(rel)))
	if err != nil {
		return none
	}
	d, err := g.wk.w.openDir(at)
	if err != nil {
		return none
	}
	defer d.Close()
	entries, _ := d.Entries(g.wk.ctx)
	rules := g.wk.enter(d, entries, outer)
	if rel != "." && onlyIgnored(rules, entries) {
		return gitDir{ignored: rel}
	}
	return gitDir{rules: rules}
}

// onlyIgnored reports whether git ignores everything in a directory, but for its rules.
func onlyIgnored(rules *gitignore.Matcher, entries []Entry) bool {
	all := false
	for _, e := range entries {
		if strings.HasPrefix(e.Name, ".git") { // or a .gitkeep
			continue
		}
		if all = rules.Match(e.Name, kindOf(e)) == gitignore.Ignored; !all {
			return false
		}
	}
	return all
}

// rulesAbove returns the matcher of the parent of d, with the rules from the top of the repository
// down. It is nil if d is in an ignored directory, because a walk that starts there should see the
// files.
func (wk *walk) rulesAbove(d *Directory) *gitignore.Matcher {
	if d.ref.rel == "." {
		return wk.rulesAboveRoot(d.ref.root.Index)
	}
	parent := wk.dirsOf(d.ref.root.Index).dir(path.Dir(d.ref.rel))
	if parent.ignored != "" ||
		parent.rules.Match(path.Base(d.ref.rel), gitignore.Directory) == gitignore.Ignored {
		return nil
	}
	return parent.rules
}

// rulesAboveRoot returns the matcher of the parent of a root that lies in a repository: a package of
// a larger one, for example. It is nil if the root does not, or if the repository ignores it.
//
// These files are the only ones above a root that are read. They decide what a walk leaves out, and
// are not shown. As with git, a repository of another user does not count: in a directory such as
// /tmp anybody could make one.
func (wk *walk) rulesAboveRoot(root int) *gitignore.Matcher {
	at := wk.w.opened[root].Real.path
	owner, err := os.Lstat(at)
	if err != nil || isRepository(at, owner) {
		return nil
	}
	dirs := []string{} // from the parent of the root to the top of the repository
	for dir := filepath.Dir(at); ; dir = filepath.Dir(dir) {
		if !wk.w.policy.allows(locate(dir)) {
			return nil
		}
		dirs = append(dirs, dir)
		if isRepository(dir, owner) {
			break
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
	slices.Reverse(dirs)
	var rules *gitignore.Matcher
	for i, dir := range dirs {
		own := wk.rulesOf(filepath.Join(dir, ruleFile), owner)
		if i == 0 {
			exclude := filepath.Join(dir, repository, "info", "exclude")
			rules = gitignore.NewMatcher(own, wk.rulesOf(exclude, owner))
		} else if rules.Match(filepath.Base(dir), gitignore.Directory) == gitignore.Ignored {
			return nil
		} else {
			rules = rules.Enter(filepath.Base(dir), own)
		}
	}
	if rules.Match(filepath.Base(at), gitignore.Directory) == gitignore.Ignored {
		return nil
	}
	return rules
}

// isRepository reports whether a directory is the top of a repository of the same owner, or of one
// that everybody trusts.
func isRepository(dir string, owner os.FileInfo) bool {
	info, err := os.Lstat(filepath.Join(dir, repository))
	return err == nil && dirfd.Trusted(info, owner)
}

// rulesOf reads a file of rules by its path.
func (wk *walk) rulesOf(path string, owner os.FileInfo) *gitignore.Rules {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || !dirfd.Trusted(info, owner) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if now, err := file.Stat(); err != nil || !os.SameFile(info, now) {
		return nil
	}
	return wk.readRules(file, info.Size())
}

// readRules reads a file of rules that has this size. It returns nil for one that is too large.
func (wk *walk) readRules(file io.Reader, size int64) *gitignore.Rules {
	if size > maxRules {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRules+1))
	size = int64(len(data))
	if err != nil || size > maxRules || wk.rulesRead.Add(size) > maxWalkRules {
		return nil
	}
	return gitignore.Parse(data)
}
