package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Remove removes the worktrees of a set if nothing in any of them can be lost, and returns the set.
// The branches stay. After an error, what was not removed is still in the registry.
func (r *Registry) Remove(ctx context.Context, name string) (Set, error) {
	set, err := r.Find(name)
	if err != nil {
		return set, err
	}
	if err := checkVersion(ctx); err != nil {
		return set, err
	}
	var wrong []error
	for _, repository := range set.Repositories {
		wrong = append(wrong, repository.blamed(repository.checkRemoval(ctx)))
	}
	if err := errors.Join(wrong...); err != nil {
		return set, err
	}
	for _, repository := range set.Repositories {
		// It is checked again, because it may have changed in the meantime.
		if err := repository.remove(ctx); err != nil {
			return set, repository.blamed(err)
		}
	}
	return set, r.forget(name)
}

// blamed returns an error about the worktree.
func (r *Repository) blamed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s stays: %w", text.Printable(r.Path), err)
}

// remove removes the worktree, unless something in it could be lost.
func (r *Repository) remove(ctx context.Context) error {
	if err := r.checkRemoval(ctx); err != nil {
		return err
	}
	g, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	registered, err := r.registration(ctx, g)
	if err != nil || registered == nil {
		return err // it is gone
	}
	g = g.writing(r.Common, parent(r.Path))
	if _, err := g.output(ctx, "worktree", "unlock", "--", r.Path); err != nil {
		return err
	}
	_, err = g.output(ctx, "worktree", "remove", "--", r.Path)
	if err != nil {
		_, lockErr := g.output(context.WithoutCancel(ctx), "worktree", "lock", "--reason",
			lockReason(r.Branch), "--", r.Path)
		err = errors.Join(err, lockErr)
	}
	return err
}

// registration is what git knows of a worktree.
type registration struct{ branch, lock string }

// registration returns what git knows of the worktree, or nil if it does not know it.
func (r *Repository) registration(ctx context.Context, g git) (*registration, error) {
	g.dir = r.Common
	list, err := g.output(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	var found *registration
	for line := range strings.SplitSeq(list, "\x00") {
		name, value, _ := strings.Cut(line, " ")
		switch {
		case name == "worktree" && found != nil:
			return found, nil
		case name == "worktree" && nativePath(value) == r.Path:
			found = &registration{}
		case found == nil:
		case name == "branch":
			found.branch = value
		case name == "locked":
			found.lock = value
		}
	}
	return found, nil
}
