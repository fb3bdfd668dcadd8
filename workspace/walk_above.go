package workspace

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

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
