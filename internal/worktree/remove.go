package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Remove removes the worktrees of a task if nothing in any of them can be lost, and returns the
// task. The branches stay. After an error all worktrees are still there, unless all could be
// removed and only something was left. A task that was half made is undone.
func (r *Registry) Remove(ctx context.Context, name string) (Task, error) {
	task, err := r.Find(name)
	if err != nil {
		return task, err
	}
	if err := checkVersion(ctx); err != nil {
		return task, err
	}
	release, err := r.claim(name)
	if err != nil {
		return task, err
	}
	defer release()
	if task.State == HalfMade {
		return task, r.undo(ctx, task)
	}
	if !exists(r.hidden(removed, name)) {
		err = r.setAside(ctx, task)
	}
	if err == nil {
		err = r.discard(ctx, task, removed)
	}
	if err == nil {
		err = r.forget(name)
	}
	return task, err
}

// setAside checks that nothing can be lost, and gives the folder of a task the name of one that can
// be deleted. In between it has a name that nobody knows, and is checked once more: it may have
// changed in the meantime.
func (r *Registry) setAside(ctx context.Context, s Task) error {
	place, aside := r.place(s.Name), r.hidden(removing, s.Name)
	if exists(aside) { // a process was killed here
		if err := os.Rename(aside, place); err != nil {
			return err
		}
	}
	if err := s.checkRemoval(ctx, place); err != nil || !exists(place) {
		return err
	}
	if err := os.Rename(place, aside); err != nil {
		return err
	}
	if err := s.checkRemoval(ctx, aside); err != nil {
		return errors.Join(err, os.Rename(aside, place))
	}
	return os.Rename(aside, r.hidden(removed, s.Name))
}

// checkRemoval checks that nothing can be lost of the worktrees in dir.
func (s Task) checkRemoval(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var wrong []error
	for _, e := range entries {
		if !slices.ContainsFunc(s.Repositories, func(r *Repository) bool {
			return r.in(dir) == filepath.Join(dir, e.Name())
		}) {
			wrong = append(wrong, fmt.Errorf("%s was not made by acp-agent: move it away",
				text.Printable(filepath.Join(dir, e.Name()))))
		}
	}
	for _, repository := range s.Repositories {
		wrong = append(wrong, repository.blamed(repository.checkRemoval(ctx, repository.in(dir))))
	}
	return errors.Join(wrong...)
}

// discard deletes the worktrees of a task in its hidden folder, and what git knows of them.
func (r *Registry) discard(ctx context.Context, s Task, state hiddenState) error {
	dir := r.hidden(state, s.Name)
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", text.Printable(dir)) // a link could lead anywhere
	}
	var left []error
	for _, repository := range s.Repositories {
		left = append(left, repository.blamed(repository.discard(ctx, repository.in(dir))))
	}
	return errors.Join(left...)
}

func (r *Repository) discard(ctx context.Context, at string) error {
	if err := os.RemoveAll(at); err != nil || !exists(r.Common) {
		return err
	}
	g, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	for _, path := range []string{at, r.Path} { // git knows one of them
		lock, known, err := lockOf(ctx, g, path)
		if err == nil && known && lock == lockReason(r.Branch) {
			// Twice, because it is locked. Git finds no folder there.
			_, err = g.writing(r.Common).output(ctx, "worktree", "remove", "-f", "-f", "--", path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blamed returns an error about the worktree.
func (r *Repository) blamed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s was not removed: %w", text.Printable(r.Path), err)
}

// lockOf returns the reason for which the worktree at a path is locked, and whether git knows it.
func lockOf(ctx context.Context, g git, path string) (reason string, known bool, err error) {
	list, err := g.output(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", false, err
	}
	for line := range strings.SplitSeq(list, "\x00") {
		name, value, _ := strings.Cut(line, " ")
		switch {
		case name == "worktree" && known:
			return reason, true, nil
		case name == "worktree":
			known = nativePath(value) == path
		case name == "locked" && known:
			reason = value
		}
	}
	return reason, known, nil
}
