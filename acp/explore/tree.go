package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/ignore"
)

const (
	gitignore = ".gitignore"
	// maxRules is the size in bytes over which a file of ignore rules is not obeyed.
	maxRules = 1 << 20
	// maxDepth is how deep directories are entered: each that is entered is held open.
	maxDepth = 100
)

// errFull ends a walk at its bound of files.
var errFull = errors.New("no more files")

// tree goes through the files of all roots, less what git ignores. It serves one walk.
type tree struct {
	workspace *workspace.Workspace
	roots     []root
	// left is how many files may still be looked at.
	left int
	// full says that there were more.
	full bool
	// reached holds the real paths of files that were given out, where roots overlap and a
	// file may be come by twice; else it is nil.
	reached map[string]bool
	skipped skipped
}

func (t *turn) tree() *tree {
	files := &tree{workspace: t.workspace(), roots: t.roots, left: t.options.MaxFiles}
	if overlap(t.roots) {
		files.reached = make(map[string]bool)
	}
	return files
}

// overlap reports whether a root is another or lies in one. It saves work; a file's place in
// scope is never judged by it.
func overlap(roots []root) bool {
	for i, a := range roots {
		for j, b := range roots {
			if i != j && strings.HasPrefix(dirPrefix(b), dirPrefix(a)) {
				return true
			}
		}
	}
	return false
}

func dirPrefix(r root) string {
	return strings.TrimSuffix(r.Real.String(), string(filepath.Separator)) + string(filepath.Separator)
}

// walk gives visit every folder that has files, in the answers' order. A folder that visit uses
// after it returns it holds. Directories that cannot be read are counted and passed
// over. The error is visit's, the context's, or workspace.ErrClosed.
func (t *tree) walk(ctx context.Context, visit func(*folder) error) error {
	for _, r := range t.roots {
		dir, err := t.workspace.OpenDir(r.Dir.String())
		if errors.Is(err, workspace.ErrClosed) {
			return err
		}
		if err != nil {
			t.skipped.unreadable(r.show(""), err)
			continue
		}
		f := newFolder(dir, r, "")
		err = t.enter(ctx, f, 0, visit, func(own *ignore.Rules) *ignore.Matcher {
			return ignore.NewMatcher(own, t.excludes(dir))
		})
		f.release()
		if err == errFull {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newFolder(dir *workspace.Directory, r root, rel string) *folder {
	f := &folder{dir: dir, root: r, rel: rel}
	f.hold()
	return f
}

// enter visits f, then the directories in it. judge makes the matcher of f's entries from f's own rules.
func (t *tree) enter(ctx context.Context, f *folder, depth int, visit func(*folder) error, judge func(*ignore.Rules) *ignore.Matcher) error {
	entries, err := f.dir.Entries(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.skipped.unreadable(f.root.show(f.rel), err)
		return nil
	}
	dirs, files, hasRules := split(entries)
	var own *ignore.Rules
	if hasRules {
		own = t.rules(f.dir, gitignore)
	}
	matcher := judge(own)
	if err := t.visit(f, files, matcher, visit); err != nil {
		return err
	}
	for _, name := range dirs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if matcher.Match(name, ignore.Directory) == ignore.Ignored {
			continue
		}
		if err := t.descend(ctx, f, name, matcher, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) descend(ctx context.Context, f *folder, name string, matcher *ignore.Matcher, depth int, visit func(*folder) error) error {
	if depth > maxDepth {
		t.skipped.unreadable(f.root.show(f.join(name)), fmt.Errorf("it lies more than %d directories deep", maxDepth))
		return nil
	}
	dir, err := f.dir.OpenDir(name)
	if errors.Is(err, workspace.ErrClosed) {
		return err
	}
	if err != nil {
		t.skipped.unreadable(f.root.show(f.join(name)), err)
		return nil
	}
	child := newFolder(dir, f.root, f.join(name))
	defer child.release()
	return t.enter(ctx, child, depth, visit, func(own *ignore.Rules) *ignore.Matcher { return matcher.Enter(name, own) })
}

// visit gives out the files that are wanted.
func (t *tree) visit(f *folder, files []string, matcher *ignore.Matcher, visit func(*folder) error) error {
	for _, name := range files {
		if matcher.Match(name, ignore.File) == ignore.Ignored || t.again(f, name) {
			continue
		}
		if t.left == 0 {
			t.full = true
			break
		}
		t.left--
		f.files = append(f.files, name)
	}
	if len(f.files) > 0 {
		if err := visit(f); err != nil {
			return err
		}
	}
	if t.full {
		return errFull
	}
	return nil
}

// again reports whether the file was given out before, for another root.
func (t *tree) again(f *folder, name string) bool {
	if t.reached == nil {
		return false
	}
	real := f.dir.Ref().Real() + "/" + name
	if t.reached[real] {
		return true
	}
	t.reached[real] = true
	return false
}

// excludes are the rules of the repository whose top dir is, if it is one.
func (t *tree) excludes(dir *workspace.Directory) *ignore.Rules {
	for _, name := range []string{".git", "info"} {
		child, err := dir.OpenDir(name)
		if err != nil {
			return nil
		}
		defer child.Close()
		dir = child
	}
	return t.rules(dir, "exclude")
}

// rules reads a file of ignore rules. One that cannot be read has none, as for git.
func (t *tree) rules(dir *workspace.Directory, name string) *ignore.Rules {
	file, err := dir.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRules+1))
	if err != nil || len(data) > maxRules {
		return nil
	}
	return ignore.Parse(data)
}
