package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Make makes everything that is planned, and returns it. After an error it undoes what it has made
// itself, and says what is left if that fails too.
func (p *Plan) Make(ctx context.Context) (Task, error) {
	p.task.Made = time.Now().UTC().Truncate(time.Second)
	for _, c := range p.made {
		p.task.Repositories = append(p.task.Repositories, c.Repository)
	}
	// The file comes first: of two processes only one can create it, and it is still there if this
	// one is killed in between.
	err := p.registry.save(p.task, privatefile.CreateFile)
	if errors.Is(err, fs.ErrExist) {
		return Task{}, errTaken(p.task.Name)
	}
	if err != nil {
		return Task{}, fmt.Errorf("cannot record the worktrees: %w", err)
	}
	if err := p.make(ctx); err != nil {
		return Task{}, errors.Join(err, p.registry.undo(context.WithoutCancel(ctx), p.task))
	}
	return p.task, nil
}

// make makes the worktrees in a hidden folder. Its last step gives that folder its name, so what a
// killed process leaves is either complete, or in a folder that nobody works in.
func (p *Plan) make(ctx context.Context) error {
	hidden := p.registry.hidden(making, p.task.Name)
	err := privatefile.MakeDir(p.registry.dir)
	if err == nil {
		err = os.Mkdir(hidden, 0o700)
	}
	if err != nil {
		return err
	}
	release, err := p.registry.claim(p.task.Name)
	if err != nil {
		return err
	}
	defer release()
	for _, c := range p.made {
		if err := c.make(ctx, hidden); err != nil {
			return fmt.Errorf("%s: %w", text.Printable(c.Top), err)
		}
	}
	if err := p.registry.save(p.task, privatefile.WriteFile); err != nil { // with what was copied
		return err
	}
	return os.Rename(hidden, p.registry.place(p.task.Name))
}

// make makes the branch, and the worktree in a folder that will be renamed.
func (c *checkout) make(ctx context.Context, dir string) error {
	g, at, reason := c.git.unfiltered().writing(c.Common, dir), c.in(dir), lockReason(c.Branch)
	if !c.Existing {
		// With an empty old value this fails if the branch exists.
		if _, err := g.output(ctx, "update-ref", "--create-reflog", "-m", reason, c.ref(), c.Base,
			""); err != nil {
			return err
		}
	}
	_, err := g.output(ctx, "worktree", "add", "--quiet", "--lock", "--reason", reason, "--", at,
		c.Branch)
	if err == nil {
		err = c.copyIgnored(ctx, at)
	}
	if err == nil {
		err = c.rename(ctx, at)
	}
	return err
}

// rename tells git that the worktree at a path is about to be at its own.
func (r *Repository) rename(ctx context.Context, at string) error {
	_, own, err := r.identify(ctx, at)
	if err != nil {
		return err
	}
	file := filepath.Join(own, "gitdir")
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	// Git may have written a relative path. It stays one, because both folders are equally deep.
	end := func(path string) string {
		return "/" + filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path) + "/.git\n"
	}
	begin, ok := strings.CutSuffix(string(content), end(at))
	if !ok {
		return fmt.Errorf("git recorded the new worktree in an unexpected way: %s",
			text.Line(string(content), 300))
	}
	return privatefile.Replace(file, []byte(begin+end(r.Path)), info.Mode().Perm())
}

// undo removes what [Plan.Make] has made of a task so far.
func (r *Registry) undo(ctx context.Context, s Task) error {
	err := r.discard(ctx, s, making)
	for _, repository := range s.Repositories {
		err = errors.Join(err, repository.removeBranch(ctx))
	}
	if err == nil {
		err = r.forget(s.Name)
	}
	if err != nil {
		return fmt.Errorf("and not everything could be undone; acp-agent worktree list shows what "+
			"is left: %w", err)
	}
	return nil
}

// removeBranch removes the branch if it was made for the worktree, and nothing has happened to it
// since.
func (r *Repository) removeBranch(ctx context.Context) error {
	if r.Existing || !exists(r.Common) {
		return nil
	}
	g, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	last, err := g.line(ctx, "log", "--walk-reflogs", "--max-count=1", "--format=%H %gs", r.ref(),
		"--")
	if err != nil || last != r.Base+" "+lockReason(r.Branch) {
		return nil // it is missing, or somebody else made it
	}
	_, err = g.writing(r.Common).output(ctx, "update-ref", "-d", r.ref(), r.Base)
	return err
}

// ref returns the full name of the branch.
func (r *Repository) ref() string { return "refs/heads/" + r.Branch }

// in returns the path of the worktree if dir is the folder of its task.
func (r *Repository) in(dir string) string { return filepath.Join(dir, filepath.Base(r.Path)) }

// lockReason is the reason for which a worktree is locked.
func lockReason(branch string) string { return "acp-agent worktree " + branch }

// Describe returns what would be made, for a person: what stays shared first. Each line is plain
// text.
func (p *Plan) Describe() (lines []string) {
	for _, f := range p.task.Folders {
		if f.Shared {
			lines = append(lines,
				text.Printable(f.Original)+" is in no git repository and is shared")
		}
	}
	for _, c := range p.made {
		lines = append(lines, c.describe())
		for _, lack := range c.lacks {
			lines = append(lines, "  "+lack)
		}
	}
	return lines
}

func (c *checkout) describe() string {
	kind := "a new branch"
	if c.Existing {
		kind = "the existing branch"
	}
	line := fmt.Sprintf("%s: %s %s at %s, checked out in %s", text.Printable(c.Top), kind,
		text.Printable(c.Branch), text.Prefix(c.Base, 12), text.Printable(c.Path))
	if c.Changes > 0 {
		line += "; without " + text.Count(c.Changes, "uncommitted change, which is left there",
			"uncommitted changes, which are left there")
	}
	if n := len(c.ignored); n > 0 {
		line += "; " + text.Count(n, "ignored file is", "ignored files are") + " copied"
	}
	return line
}
