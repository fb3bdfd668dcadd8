package workspace

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/gitignore"
)

const (
	repository = ".git"
	ruleFile   = ".gitignore"

	// maxRules is the maximum size, in bytes, of a file of ignore rules. A larger one is ignored.
	maxRules = 1 << 20
	// maxAllRules is the maximum size, in bytes, of the rules that a ruleReader reads. Parsed they
	// take up to 40 times as much memory.
	maxAllRules = 4 << 20
)

// ruleReader reads ignore rules, up to a limit.
type ruleReader struct {
	w    *Workspace
	size atomic.Int64 // of what was read, in bytes
}

// read parses a file of rules that was opened. Like git it ignores one that cannot be.
func (r *ruleReader) read(file io.ReadCloser, err error) *gitignore.Rules {
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRules+1))
	if err != nil || len(data) > maxRules || r.size.Add(int64(len(data))) > maxAllRules {
		return nil
	}
	return gitignore.Parse(data)
}

// enter returns the matcher of dir, which has these entries. outer is that of the parent, or for
// the start of a walk that of all directories above, nil for none.
func (r *ruleReader) enter(
	dir *Directory, entries []Entry, outer *gitignore.Matcher,
) *gitignore.Matcher {
	find := func(name string) int {
		return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	}
	var own *gitignore.Rules
	if i := find(ruleFile); i >= 0 && entries[i].Type.IsRegular() {
		own = r.read(dir.openEntry(entries[i]))
	}
	switch {
	case find(repository) >= 0:
		exclude := parsedPath{path: dir.path(repository),
			at: dir.at.child(repository, "info", "exclude")}
		return gitignore.NewMatcher(own, r.read(r.w.openFile(exclude)))
	case outer == nil:
		return gitignore.NewMatcher(own)
	default:
		return outer.Enter(dir.at.names[len(dir.at.names)-1], own)
	}
}

// IgnoredDirs knows which directories of a root git ignores. It is for one goroutine.
type IgnoredDirs struct {
	rules *ruleReader
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
	return (&ruleReader{w: w}).dirsOf(root.Index)
}

func (r *ruleReader) dirsOf(root int) *IgnoredDirs {
	return &IgnoredDirs{rules: r, root: root, known: make(map[string]gitDir)}
}

// First returns the first directory on the way from the root to the directory rel, and rel itself,
// that git ignores, or of which git ignores everything. Both are slash-separated from the root. It
// returns "" if git ignores none of them.
func (g *IgnoredDirs) First(rel string) string {
	if g.rules.w.begin() != nil {
		return ""
	}
	defer g.rules.w.finish()
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
		outer = g.rules.aboveRoot(g.root)
	} else {
		parent := g.dir(path.Dir(rel))
		if parent.ignored != "" {
			return parent
		}
		outer = parent.rules
		if outer.Ignores(path.Base(rel), true) {
			return gitDir{ignored: rel}
		}
	}
	none := gitDir{rules: gitignore.NewMatcher()}
	at, err := parse(filepath.Join(g.rules.w.opened[g.root].Dir.path, filepath.FromSlash(rel)))
	if err != nil {
		return none
	}
	d, err := g.rules.w.openDir(at)
	if err != nil {
		return none
	}
	defer d.Close()
	entries, _ := d.Entries(context.Background())
	rules := g.rules.enter(d, entries, outer)
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
		if all = rules.Ignores(e.Name, e.Type.IsDir()); !all {
			return false
		}
	}
	return all
}

// above returns the matcher of the parent of d, with the rules from the top of the repository
// down. It is nil if d is in an ignored directory, because a walk that starts there should see the
// files.
func (r *ruleReader) above(d *Directory) *gitignore.Matcher {
	if d.ref.rel == "." {
		return r.aboveRoot(d.ref.root.Index)
	}
	parent := r.dirsOf(d.ref.root.Index).dir(path.Dir(d.ref.rel))
	if parent.ignored != "" ||
		parent.rules.Ignores(path.Base(d.ref.rel), true) {
		return nil
	}
	return parent.rules
}

// aboveRoot returns the matcher of the parent of a root that lies in a repository: a package of
// a larger one, for example. It is nil if the root does not, or if the repository ignores it.
//
// These files are the only ones above a root that are read. They decide what a walk leaves out, and
// are not shown. As with git, a repository of another user does not count: in a directory such as
// /tmp anybody could make one.
func (r *ruleReader) aboveRoot(root int) *gitignore.Matcher {
	at := r.w.opened[root].Real.path
	owner, err := os.Lstat(at)
	if err != nil || isRepository(at, owner) {
		return nil
	}
	dirs := []string{} // from the parent of the root to the top of the repository
	for dir := filepath.Dir(at); ; dir = filepath.Dir(dir) {
		if !r.w.policy.allows(locate(dir)) {
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
		own := r.read(openTrusted(filepath.Join(dir, ruleFile), owner))
		if i == 0 {
			exclude := filepath.Join(dir, repository, "info", "exclude")
			rules = gitignore.NewMatcher(own, r.read(openTrusted(exclude, owner)))
		} else if rules.Ignores(filepath.Base(dir), true) {
			return nil
		} else {
			rules = rules.Enter(filepath.Base(dir), own)
		}
	}
	if rules.Ignores(filepath.Base(at), true) {
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

// openTrusted opens a file of rules by its path.
func openTrusted(path string, owner os.FileInfo) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !dirfd.Trusted(info, owner) {
		return nil, fs.ErrPermission
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if now, err := file.Stat(); err != nil || !os.SameFile(info, now) {
		_ = file.Close()
		return nil, dirfd.ErrChanged
	}
	return file, nil
}
