package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Changes are the differences between what a folder of a checkout had once and what it has now,
// committed or not. A file that git does not know, and does not ignore, has been added.
type Changes struct {
	git     git    // in the folder
	tree    string // or commit, that it had
	objects string // has objects that the repository does not have, or ""
	without []string
}

// FileChange is a file that differs.
type FileChange struct {
	// Path is relative to the folder, with slashes.
	Path string `json:"path"`
	// Added and Removed are numbers of lines, 0 for a binary file.
	Added   int  `json:"added"`
	Removed int  `json:"removed"`
	Binary  bool `json:"binary,omitempty"`
}

// Compare returns the differences from the commit on which the work in the worktree began.
func (r *Repository) Compare(ctx context.Context) (Changes, error) {
	g, _, err := r.identify(ctx, r.Path)
	if err != nil {
		return Changes{}, err
	}
	begun, err := r.begun(ctx, g)
	return Changes{git: g, tree: begun}, err
}

// Files returns the files that differ, by path.
func (c Changes) Files(ctx context.Context) ([]FileChange, error) {
	said, err := c.print(ctx, "--numstat", "-z")
	changes := []FileChange{}
	for line := range strings.SplitSeq(strings.TrimSuffix(said, "\x00"), "\x00") {
		added, rest, _ := strings.Cut(line, "\t")
		removed, path, ok := strings.Cut(rest, "\t")
		if !ok {
			continue
		}
		f := FileChange{Path: path, Binary: added == "-"}
		f.Added, _ = strconv.Atoi(added)
		f.Removed, _ = strconv.Atoi(removed)
		changes = append(changes, f)
	}
	return changes, err
}

// Patch returns the differences as git prints them.
func (c Changes) Patch(ctx context.Context) (string, error) {
	return c.print(ctx, "--patch", "--binary", "--src-prefix=a/", "--dst-prefix=b/",
		"--submodule=short")
}

// print prints the differences. It gives git an index and its own objects, so that nothing of the
// repository changes.
func (c Changes) print(ctx context.Context, format ...string) (said string, err error) {
	dir, err := os.MkdirTemp("", "acp-agent-diff-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := c.git.apart(ctx, dir, c.objects)
	if err != nil {
		return "", err
	}
	if err := g.intendToAdd(ctx, dir, c.tree); err != nil {
		return "", err
	}
	args := slices.Concat([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--no-color",
		"--relative", "--ignore-submodules=dirty"}, format, []string{c.tree, "--", "."})
	for _, name := range c.without {
		args = append(args, ":(exclude,literal)"+name)
	}
	return g.output(ctx, args...)
}

// apart returns g with a copy of the index in dir, and a directory for new objects there. objects
// has further objects, or is "".
func (g git) apart(ctx context.Context, dir, objects string) (git, error) {
	var paths [2]string
	for i, name := range []string{"index", "objects"} {
		path, err := g.line(ctx, "rev-parse", "--path-format=absolute", "--git-path", name)
		if err != nil {
			return g, err
		}
		paths[i] = nativePath(path)
	}
	index, own := filepath.Join(dir, "index"), filepath.Join(dir, "objects")
	if err := errors.Join(os.MkdirAll(own, 0o700), copyIndex(paths[0], index)); err != nil {
		return g, err
	}
	others := []string{quotedObjects(paths[1])}
	if objects != "" {
		others = append(others, quotedObjects(objects))
	}
	g.settings = append(slices.Clone(g.settings), setting{"core.splitIndex", "false"})
	g.env = append(slices.Clone(g.env), "GIT_INDEX_FILE="+index, "GIT_OBJECT_DIRECTORY="+own,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+strings.Join(others, string(os.PathListSeparator)))
	return g, nil
}

// quotedObjects returns a path for a list of directories in the environment of git.
func quotedObjects(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// intendToAdd lets the index in dir, which is not the checkout's, have the files that git does not
// know but should compare with a tree: those that it does not ignore, but not the repositories
// among them, and those that the tree has.
func (g git) intendToAdd(ctx context.Context, dir, tree string) error {
	unknown, err := g.output(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	gone, err := g.output(ctx, "diff-index", "--cached", "--name-only", "--diff-filter=D",
		"--relative", "--no-renames", "-z", tree, "--", ".")
	if err != nil {
		return err
	}
	var files strings.Builder
	for name := range strings.SplitSeq(unknown+gone, "\x00") {
		info, err := os.Lstat(filepath.Join(g.dir, filepath.FromSlash(name)))
		if err == nil && !info.IsDir() {
			files.WriteString(name + "\x00")
		}
	}
	list := filepath.Join(dir, "files")
	if err := os.WriteFile(list, []byte(files.String()), 0o600); err != nil || files.Len() == 0 {
		return err
	}
	g.env = append(slices.Clone(g.env), "GIT_LITERAL_PATHSPECS=1")
	_, err = g.writing(dir).output(ctx, "add", "--intent-to-add", "--force",
		"--pathspec-from-file="+list, "--pathspec-file-nul")
	return err
}

// copyIndex copies an index, with its time: git reads a file again that is not older. A checkout
// may have none.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	index, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, index, 0o600),
		os.Chtimes(to, time.Time{}, info.ModTime()))
}

// begun returns the commit on which the work in the worktree begins: the one from which it was
// made, or a later one that it shares with the original's, after a rebase for example.
func (r *Repository) begun(ctx context.Context, g git) (string, error) {
	original, err := r.originalHead(ctx)
	if err != nil || original == "" {
		return r.Base, err
	}
	shared, err := g.line(ctx, "merge-base", "HEAD", original)
	if err != nil {
		return r.Base, nil // they share none
	}
	if head, err := g.line(ctx, "rev-parse", "HEAD"); err != nil || head == shared { // merged
		return r.Base, err
	}
	if _, err := g.output(ctx, "merge-base", "--is-ancestor", r.Base, shared); err != nil {
		return r.Base, nil // the original went back
	}
	return shared, nil
}

// originalHead returns the commit that the original has checked out, "" if it has none or is gone.
func (r *Repository) originalHead(ctx context.Context) (string, error) {
	if !exists(r.Top) {
		return "", nil
	}
	g, err := newGit(ctx, r.Top)
	if err != nil {
		return "", err
	}
	head, err := g.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return "", nil // an unborn branch
	}
	return head, nil
}

// Status is how far the work in a worktree is.
type Status struct {
	// Branch is what the worktree has checked out now, "" for a commit that is on no branch.
	Branch string `json:"branch"`
	// Changed is the number of files with changes that are not committed.
	Changed int `json:"changed"`
	// Ahead is the number of commits that the original does not have checked out, and Behind that
	// of those which it has more. Merged says that the branch has commits, and the original has
	// all.
	Ahead  int  `json:"ahead"`
	Behind int  `json:"behind"`
	Merged bool `json:"merged,omitempty"`
	// Problem says why the rest is not known, or "".
	Problem string `json:"problem,omitempty"`
}

// Status finds out how far the work is.
func (r *Repository) Status(ctx context.Context) Status {
	s, err := r.status(ctx)
	if missing := r.Missing(); missing != "" {
		s.Problem = missing
	} else if err != nil {
		s.Problem = err.Error()
	}
	return s
}

func (r *Repository) status(ctx context.Context) (s Status, err error) {
	g, _, err := r.identify(ctx, r.Path)
	if err != nil {
		return s, err
	}
	changed, err := g.changes(ctx)
	if err != nil {
		return s, err
	}
	s.Changed = strings.Count(changed, "\x00")
	s.Branch, _ = g.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	head, err := g.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return s, fmt.Errorf("branch %s without a commit", text.Printable(s.Branch))
	}
	original, err := r.originalHead(ctx)
	if err != nil || original == "" {
		return s, cmp.Or(err, errors.New("the original has no commit"))
	}
	counts, err := g.line(ctx, "rev-list", "--left-right", "--count", original+"..."+head)
	if err == nil {
		_, err = fmt.Sscan(counts, &s.Behind, &s.Ahead)
	}
	s.Merged = err == nil && s.Ahead == 0 && head != r.Base
	return s, err
}

// String returns the status in a few words.
func (s Status) String() string {
	if s.Problem != "" {
		return s.Problem
	}
	var words []string
	for _, n := range []struct {
		count int
		word  string
	}{{s.Changed, "changed"}, {s.Ahead, "ahead"}, {s.Behind, "behind"}} {
		if n.count > 0 {
			words = append(words, strconv.Itoa(n.count)+" "+n.word)
		}
	}
	switch {
	case s.Merged:
		words = append(words, "merged")
	case words == nil:
		words = []string{"nothing changed"}
	}
	if s.Branch == "" {
		words = append(words, "on no branch")
	}
	return strings.Join(words, ", ")
}
