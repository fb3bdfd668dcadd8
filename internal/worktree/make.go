package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Make makes everything that is planned, and returns it. After an error it undoes what it has made
// itself, and says what is left if that fails too.
func (p *Plan) Make(ctx context.Context) (Set, error) {
	p.set.Made = time.Now().UTC().Truncate(time.Second)
	for _, c := range p.made {
		p.set.Repositories = append(p.set.Repositories, c.Repository)
	}
	// The file comes first: of two processes only one can create it, and it is still there if this
	// one is killed in between.
	err := p.registry.save(p.set, privatefile.CreateFile)
	if errors.Is(err, fs.ErrExist) {
		return Set{}, errTaken(p.set.Name)
	}
	if err != nil {
		return Set{}, fmt.Errorf("cannot note the worktrees: %w", err)
	}
	place := p.registry.place(p.set.Name)
	if err = privatefile.MakeDir(p.registry.dir); err == nil {
		err = os.Mkdir(place, 0o700)
	}
	if err != nil {
		return Set{}, errors.Join(err, privatefile.Remove(p.registry.file(p.set.Name)))
	}
	var undo []func(context.Context) error
	for _, c := range p.made {
		if err = c.make(ctx, place, &undo); err != nil {
			err = fmt.Errorf("%s: %w", text.Printable(c.Top), err)
			break
		}
	}
	if err == nil {
		err = p.registry.save(p.set, privatefile.WriteFile) // with what was copied
	}
	if err == nil {
		return p.set, nil
	}
	return Set{}, errors.Join(err, p.undo(context.WithoutCancel(ctx), undo))
}

// undo undoes everything, the last first.
func (p *Plan) undo(ctx context.Context, steps []func(context.Context) error) error {
	var left []error
	for _, step := range slices.Backward(steps) {
		left = append(left, step(ctx))
	}
	err := errors.Join(left...)
	if err == nil {
		err = p.registry.forget(p.set.Name)
	}
	if err != nil {
		return fmt.Errorf("and not everything could be undone; acp-agent worktree list shows what is "+
			"left: %w", err)
	}
	return nil
}

// make makes the branch and the worktree in place, and appends to undo how to undo each step.
func (c *checkout) make(ctx context.Context, place string, undo *[]func(context.Context) error) error {
	g, ref := c.git.writing(c.Common, place), "refs/heads/"+c.Branch
	reason := lockReason(c.Branch)
	// With an empty old value this fails if the branch exists.
	if _, err := g.output(ctx, "update-ref", "-m", reason, ref, c.Base, ""); err != nil {
		return explained(err)
	}
	*undo = append(*undo, func(ctx context.Context) error {
		// With an old value this fails if somebody has committed to it.
		_, err := g.output(ctx, "update-ref", "-d", ref, c.Base)
		return err
	}, func(ctx context.Context) error { return c.unmake(ctx, g) })
	_, err := g.output(ctx, "worktree", "add", "--quiet", "--lock", "--reason", reason, "--", c.Path,
		c.Branch)
	if err != nil {
		return explained(err)
	}
	return c.copyIgnored(ctx)
}

// unmake removes a worktree that was just made, perhaps in part.
func (c *checkout) unmake(ctx context.Context, g git) error {
	registered, err := c.registration(ctx, g)
	if err != nil {
		return err
	}
	if registered != nil {
		// Twice, because it is locked. Nobody knows it yet.
		_, err = g.output(ctx, "worktree", "remove", "--force", "--force", "--", c.Path)
	}
	return errors.Join(err, os.RemoveAll(c.Path))
}

// lockReason is the reason for which a worktree is locked.
func lockReason(branch string) string { return "acp-agent worktree " + branch }

// explained adds what to do about an error of git.
func explained(err error) error {
	said := err.Error()
	for phrase, hint := range map[string]string{
		"is already checked out":             "use another name",
		"already used by worktree":           "use another name",
		"missing but already registered":     "git worktree list shows it; acp-agent never prunes",
		"missing but locked":                 "git worktree list shows it; acp-agent never unlocks",
		"No space left on device":            "nothing is kept",
		"insufficient permission for adding": "git's own directory must be writable",
	} {
		if strings.Contains(said, phrase) {
			return fmt.Errorf("%w (%s)", err, hint)
		}
	}
	return err
}

// Describe returns what would be made, for a person: what stays shared first. Each line is plain
// text.
func (p *Plan) Describe() (lines []string) {
	for _, f := range p.set.Folders {
		if !f.Shared {
			continue
		}
		line := text.Printable(f.Original) + " is in no git repository and stays shared"
		if n := len(f.Nested); n > 0 {
			line += fmt.Sprintf("; the %s in it stay as they are: %s",
				text.Count(n, "repository", "repositories"),
				text.Line(strings.Join(f.Nested, ", "), 200))
		}
		lines = append(lines, line)
	}
	for _, c := range p.made {
		line := fmt.Sprintf("%s: a new branch %s at %s, checked out in %s", text.Printable(c.Top),
			text.Printable(c.Branch), text.Prefix(c.Base, 12), text.Printable(c.Path))
		if c.Changes > 0 {
			line += "; without " + text.Count(c.Changes, "uncommitted change", "uncommitted changes") +
				", which stay where they are"
		}
		if n := len(c.ignored); n > 0 {
			line += "; " + text.Count(n, "ignored file is", "ignored files are") + " copied"
		}
		lines = append(lines, line)
		for _, lack := range c.unchecked {
			lines = append(lines, "  "+lack)
		}
	}
	return lines
}
