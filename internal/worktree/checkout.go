package worktree

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// checkout is a checkout of a repository from which a worktree is made.
type checkout struct {
	git git
	*Repository
	lacks   []string // what is not in the new worktree, and how to get it
	ignored []string // the ignored files to copy
}

// check finds out what the worktree will lack, and what is copied.
func (c *checkout) check(ctx context.Context, patterns []string) error {
	changes, err := c.git.changes(ctx)
	if err != nil {
		return err
	}
	c.Changes = strings.Count(changes, "\x00")
	if c.ignored, err = c.ignoredFiles(ctx, patterns); err != nil {
		return err
	}
	if err := c.checkComplete(ctx); err != nil {
		return err
	}
	c.lacks, err = c.notCheckedOut(ctx)
	return err
}

// checkComplete checks that a partial clone has what is to be checked out, because nothing is
// fetched. Of a sparse checkout that is not known.
func (c *checkout) checkComplete(ctx context.Context) error {
	_, err := c.git.output(ctx, "config", "--get-regexp", `^remote\..*\.promisor$`)
	sparse, _ := c.git.line(ctx, "config", "--type=bool", "core.sparseCheckout")
	if err != nil || sparse == "true" {
		return nil
	}
	objects, err := c.git.output(ctx, "rev-list", "--objects", "--no-walk",
		"--missing=print", c.Base)
	if err != nil || !strings.Contains("\n"+objects, "\n?") {
		return err
	}
	return fmt.Errorf("%s is a partial clone without some files of %s: get them with git -C %s "+
		"archive -o %s %.12[2]s", text.Printable(c.Top), c.Base, text.ShellWord(c.Top), os.DevNull)
}

// chooseBranch checks that the branch can be made, or used if it exists, and notes its commit.
func (c *checkout) chooseBranch(ctx context.Context, existing bool) error {
	patterns := []string{"for-each-ref", "--format=%(refname) %(worktreepath)"}
	for ref := c.ref(); ref != "refs/heads"; ref = path.Dir(ref) {
		patterns = append(patterns, ref) // and all below it
	}
	found, err := c.git.output(ctx, patterns...)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(found, "\n") {
		ref, where, _ := strings.Cut(line, " ")
		name := text.Printable(strings.TrimPrefix(ref, "refs/heads/"))
		switch {
		case ref == c.ref() && where != "":
			return fmt.Errorf("the branch %s exists and is checked out in %s: use another name",
				name, text.Printable(where))
		case ref == c.ref() && !existing:
			return fmt.Errorf("the branch %s exists: use another name, or run acp-agent worktree "+
				"add with --existing", name)
		case ref == c.ref():
			c.Existing = true
		case strings.HasPrefix(ref, c.ref()+"/"), strings.HasPrefix(c.ref(), ref+"/"):
			return fmt.Errorf("the branch %s exists, and git allows no branch %s beside it: use "+
				"another name", name, text.Printable(c.Branch))
		}
	}
	from := "HEAD"
	if c.Existing {
		from = c.ref()
	}
	c.Base, err = c.git.line(ctx, "rev-parse", "--verify", "--quiet", from+"^{commit}")
	if err != nil {
		return fmt.Errorf("its repository has no commit yet: make one first, such as with git -C "+
			"%s commit --allow-empty -m first", text.ShellWord(c.Top))
	}
	return nil
}

// notCheckedOut returns what git does not put into the new worktree, and the commands for it.
func (c *checkout) notCheckedOut(ctx context.Context) (lacks []string, err error) {
	own, err := c.git.line(ctx, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return nil, err
	}
	if name := underWay(nativePath(own)); name != "" && !c.Existing {
		lacks = append(lacks, "git is in the middle of something there ("+name+"): the branch "+
			"begins at what is checked out now")
	}
	at := "git -C " + text.ShellWord(c.Path)
	if _, err := c.git.output(ctx, "cat-file", "-e", c.Base+":.gitmodules"); err == nil {
		lacks = append(lacks, "its submodules are empty: "+at+" submodule update --init")
	}
	if _, err := c.git.output(ctx, "cat-file", "-e", c.Base+":.worktreeinclude"); err == nil {
		lacks = append(lacks, "its .worktreeinclude is not read: name the files in worktree.copy "+
			"of the configuration")
	}
	for _, name := range c.git.unapplied() {
		files, err := c.git.output(ctx, "ls-files", "-z", "--", ":(top,attr:filter="+name+")")
		switch {
		case err == nil && files == "":
		case name == "lfs":
			lacks = append(lacks, "files in Git LFS are only references: "+at+" lfs pull")
		default:
			lacks = append(lacks, "the filter "+text.Printable(name)+" was not applied: "+at+
				" read-tree --empty && "+at+" reset --hard")
		}
	}
	return lacks, nil
}

// checkFolder checks that the worktree will have a folder below its top.
func (c *checkout) checkFolder(ctx context.Context, prefix string) error {
	kind, err := c.git.line(ctx, "cat-file", "-t", c.Base+":"+filepath.ToSlash(prefix))
	if err != nil || kind != "tree" {
		return fmt.Errorf("it lies in the repository %s, but is not in its last commit: commit it "+
			"first", text.Printable(c.Top))
	}
	return nil
}
