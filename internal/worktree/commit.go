package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ErrNothing is the error of [Task.Commit] for worktrees without changes.
var ErrNothing = errors.New("there is nothing to commit")

// commit is a commit that is to be made in a worktree.
type commit struct {
	*Repository
	git     git    // as the user runs it, with hooks and signing
	own     string // git's directory of the worktree
	index   string // a copy of the index
	message string // the file with the message
}

// Commit commits the changes in all worktrees with one message, and returns the repositories in
// which it has. Git runs as the user has configured it. What can fail is done everywhere before the
// first commit is made: it stages the changes, and runs the hooks pre-commit and commit-msg. If
// something fails there, the worktrees are as before, but for what hooks have done to files. The
// error of a later failure names the commits that were made.
func (s Task) Commit(ctx context.Context, message string) (made []*Repository, err error) {
	dir, err := os.MkdirTemp("", "acp-agent-commit-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var all []*commit
	for i, r := range s.Repositories {
		c := &commit{Repository: r, index: filepath.Join(dir, fmt.Sprint("index", i)),
			message: filepath.Join(dir, fmt.Sprint("message", i))}
		changed, err := c.check(ctx)
		if err != nil {
			return nil, fmt.Errorf("nothing was committed: %s: %w", text.Printable(r.Path), err)
		}
		if changed {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, ErrNothing
	}
	for i, c := range all {
		if err := c.prepare(ctx, message+"\n\nTask: "+s.Name+"\n"); err != nil {
			for _, begun := range all[:i+1] {
				err = errors.Join(err, begun.restoreIndex())
			}
			return nil, fmt.Errorf("nothing was committed: %s: %w", text.Printable(c.Path), err)
		}
	}
	for _, c := range all {
		// The hooks have run.
		if _, err := c.git.output(ctx, "commit", "--quiet", "--no-verify", "--file",
			c.message); err != nil {
			return made, fmt.Errorf("%s: %w%s", text.Printable(c.Path), err, undoAdvice(made))
		}
		made = append(made, c.Repository)
	}
	return made, nil
}

// undoAdvice says which commits were made, and how to take them back.
func undoAdvice(made []*Repository) string {
	if len(made) == 0 {
		return ""
	}
	commands := make([]string, 0, len(made))
	for _, r := range made {
		commands = append(commands, "git -C "+text.ShellWord(r.Path)+" reset --soft HEAD~1")
	}
	return "\nThese commits were made; run the command again for the rest, or take them back " +
		"with\n  " +
		strings.Join(commands, "\n  ")
}

// check reports whether there are changes, and returns an error if they cannot be committed.
func (c *commit) check(ctx context.Context) (changed bool, err error) {
	g, own, err := c.identify(ctx, c.Path)
	if err != nil {
		return false, err
	}
	c.own, c.git = own, git{dir: c.Path}
	said, err := c.git.changes(ctx)
	if err != nil || said == "" {
		return false, err
	}
	conflicts, err := g.output(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return false, err
	}
	if conflicts != "" {
		return false, errors.New("it has conflicts: resolve them first")
	}
	if name := underWay(own); name != "" {
		return false, fmt.Errorf("git is in the middle of something there (%s): end it first", name)
	}
	branch, err := g.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return false, fmt.Errorf("it is on no branch: run git -C %s switch -c NEW-NAME first",
			text.ShellWord(c.Path))
	}
	if branch != c.Branch {
		return false, fmt.Errorf("it is on the branch %s, not %s: commit there with git, or run "+
			"git -C %s switch %s first", text.Printable(branch), text.Printable(c.Branch),
			text.ShellWord(c.Path),
			text.ShellWord(c.Branch))
	}
	for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := c.git.output(ctx, "var", who); err != nil {
			return false, err
		}
	}
	return true, copyIndex(filepath.Join(own, "index"), c.index)
}

// prepare stages all changes, and runs the hooks that may refuse them.
func (c *commit) prepare(ctx context.Context, message string) error {
	if err := os.WriteFile(c.message, []byte(message), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"add", "--all"},
		{"hook", "run", "--ignore-missing", "pre-commit"},
		{"hook", "run", "--ignore-missing", "commit-msg", "--", c.message},
	} {
		if _, err := c.git.output(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// restoreIndex makes the index what it was.
func (c *commit) restoreIndex() error {
	index, err := os.ReadFile(c.index)
	if err != nil {
		return err
	}
	const perm = 0o644
	return privatefile.Replace(filepath.Join(c.own, "index"), index, perm)
}
