package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Plan says what would be made for a session's folders.
type Plan struct {
	registry *Registry
	options  Options
	task     Task
	made     []*checkout // by the index of its repository in the task
}

// Options say how to make worktrees.
type Options struct {
	// Copy are patterns for the paths of ignored files that are copied.
	Copy []string
	// Existing uses the branches that exist already, if they are checked out nowhere.
	Existing bool
}

// Plan finds out what [Plan.Make] would make for the folders of a session: a worktree with a new
// branch name for each folder in a repository. It has no effect.
func (r *Registry) Plan(
	ctx context.Context, name string, folders workspace.Roots, o Options,
) (*Plan, error) {
	if err := checkVersion(ctx); err != nil {
		return nil, err
	}
	if err := checkName(ctx, name); err != nil {
		return nil, err
	}
	if err := r.checkFree(name); err != nil {
		return nil, err
	}
	p := &Plan{registry: r, options: o, task: Task{Name: name}}
	for _, dir := range folders.All() {
		if err := p.add(ctx, dir, folders.Grant(dir)); err != nil {
			return nil, err
		}
	}
	if len(p.made) == 0 {
		return nil, fmt.Errorf("none of the folders is in a git repository (%s): worktrees need "+
			"one, which git init makes; or name others with --cwd and --dir",
			strings.Join(append(folders.Additional().Strings(),
				folders.Cwd().String()), ", "))
	}
	for _, c := range p.made {
		if err := c.check(ctx, o.Copy); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkName checks that name can be that of a branch and of a folder.
func checkName(ctx context.Context, name string) error {
	const longest = 150 // of a file's name, of which systems allow 255 bytes
	_, err := git{}.output(ctx, "check-ref-format", "--branch", name)
	if err != nil || len(fileName(name)) > longest || name != text.Printable(name) ||
		strings.HasPrefix(name, "@") || name == "HEAD" {
		return fmt.Errorf("%s cannot be the name of a branch and a folder: use a few letters, "+
			"digits, dots and dashes", text.QuotedName(name))
	}
	return nil
}

// fileName returns the name of a file or folder for a task. It is the same as a part of a URL.
// Branches have neither "~" nor "//" in their names, so no two get the same one.
func fileName(name string) string {
	return strings.NewReplacer("%2F", "~", "%", "~~").Replace(url.PathEscape(name))
}

// add adds a folder of the session.
func (p *Plan) add(ctx context.Context, dir workspace.Dir, grant workspace.Grant) error {
	real := workspace.Real(dir).String()
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s: create it, or name another one",
			text.Printable(dir.String()))
	}
	f := Folder{Original: dir.String(), Path: dir.String(), Shared: true}
	if grant != workspace.ReadOnly { // git would write in its repository
		c, prefix, err := p.find(ctx, real)
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(dir.String()), err)
		}
		if c != nil {
			f.Path, f.Shared = filepath.Join(c.Path, prefix), false
		}
	}
	p.task.Folders = append(p.task.Folders, f)
	return nil
}

// find returns the checkout that a folder is in, and the folder's path in it. It returns nil if the
// folder is not in a repository.
func (p *Plan) find(ctx context.Context, real string) (c *checkout, prefix string, err error) {
	g, err := newGit(ctx, real)
	if err != nil {
		return nil, "", err
	}
	inside, err := g.line(ctx, "rev-parse", "--is-inside-work-tree")
	switch {
	case isOutside(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case inside != "true":
		return nil, "", errors.New("it is a bare repository, or git's own directory in one: " +
			"name a checkout instead")
	}
	top, err := g.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, "", err
	}
	top = nativePath(top)
	prefix, err = filepath.Rel(top, real)
	if _, statErr := os.Lstat(filepath.Join(top, ".git")); err != nil ||
		!filepath.IsLocal(prefix) ||
		statErr != nil {
		return nil, "", fmt.Errorf("git says that it belongs to %s, which is not a checkout "+
			"around it", text.Printable(top))
	}
	c, err = p.checkout(ctx, g, top)
	if err == nil && prefix != "." {
		err = c.checkFolder(ctx, prefix)
	}
	return c, prefix, err
}

// checkout returns the checkout at top, which it adds to the plan.
func (p *Plan) checkout(ctx context.Context, g git, top string) (*checkout, error) {
	common, err := g.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	if common, err = filepath.EvalSymlinks(nativePath(common)); err != nil {
		return nil, err
	}
	for _, other := range p.made {
		switch {
		case other.Top == top:
			return other, nil
		case other.Common == common:
			return nil, fmt.Errorf("%s is a checkout of the same repository, which can have the "+
				"branch %s only once: leave one of them out", text.Printable(other.Top),
				text.Printable(p.task.Name))
		}
	}
	if sandbox.Contains(top, p.registry.dir) {
		return nil, fmt.Errorf("the new worktrees would lie in this repository, in %s: "+
			"--state-dir chooses another place", text.Printable(p.registry.dir))
	}
	g.dir = top
	c := &checkout{git: g, Repository: &Repository{Top: top, Common: common, Branch: p.task.Name,
		Path: filepath.Join(p.registry.place(p.task.Name), p.freeFolder(top))}}
	if err := c.chooseBranch(ctx, p.options.Existing); err != nil {
		return nil, err
	}
	p.made = append(p.made, c)
	return c, nil
}

// freeFolder returns the name of the worktree of a checkout. Two do not differ only in case.
func (p *Plan) freeFolder(top string) string {
	base := filepath.Base(top)
	if base == "." || base == string(filepath.Separator) {
		base = "root"
	}
	name := base
	for n := 2; slices.ContainsFunc(p.made, func(c *checkout) bool {
		return strings.EqualFold(filepath.Base(c.Path), name)
	}); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	return name
}

// checkFree checks that there are no worktrees of this name.
func (r *Registry) checkFree(name string) error {
	switch {
	case exists(r.file(name)):
		task, err := r.Find(name)
		return cmp.Or(err, task.Incomplete(), errTaken(name))
	case slices.ContainsFunc(r.folders(name), exists):
		return fmt.Errorf("%s is in the way, and acp-agent did not make it: move it away",
			text.Printable(r.place(name)))
	}
	return nil
}

func errTaken(name string) error {
	return fmt.Errorf("there are worktrees %s already: see acp-agent worktree list",
		text.Printable(name))
}
