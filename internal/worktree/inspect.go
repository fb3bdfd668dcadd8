package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

func parent(path string) string { return filepath.Dir(path) }

// checkRemoval returns why the worktree must not be removed, or nil. What cannot be found out
// counts as a reason.
func (r *Repository) checkRemoval(ctx context.Context) error {
	common, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	registered, err := r.registration(ctx, common)
	switch {
	case err != nil:
		return err
	case r.Gone() && registered == nil:
		return nil
	case r.Gone():
		return fmt.Errorf("it was moved or deleted, and git still knows it: see git -C %s worktree list",
			text.ShellWord(r.Common))
	case registered == nil:
		return errors.New("git does not know it: it was moved, or is another one")
	case registered.lock != lockReason(r.Branch):
		return fmt.Errorf("acp-agent did not lock it: remove it with git -C %s worktree remove %s",
			text.ShellWord(r.Common), text.ShellWord(r.Path))
	}
	if users := usersOf(r.Path); len(users) > 0 {
		return fmt.Errorf("it is in use by %s: close the session, or leave the folder",
			strings.Join(users, ", "))
	}
	g, own, err := r.identify(ctx)
	if err != nil {
		return err
	}
	for _, check := range []func(context.Context, git, string) error{
		r.checkOperation, r.checkHead, r.checkSubmodules, r.checkHidden, r.checkChanges,
		r.checkIgnored,
	} {
		if err := check(ctx, g, own); err != nil {
			return err
		}
	}
	return nil
}

// identify returns how git runs in the worktree, and git's directory for it. It fails if that is
// not the worktree that was made.
func (r *Repository) identify(ctx context.Context) (g git, own string, err error) {
	info, err := os.Lstat(r.Path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no longer a folder")
	}
	if err != nil {
		return g, "", err
	}
	if g, err = newGit(ctx, r.Path); err != nil {
		return g, "", err
	}
	var said [3]string
	for i, what := range []string{"--show-toplevel", "--git-common-dir", "--git-dir"} {
		path, err := g.line(ctx, "rev-parse", "--path-format=absolute", what)
		if err != nil {
			return g, "", err
		}
		if said[i], err = filepath.EvalSymlinks(nativePath(path)); err != nil {
			return g, "", err
		}
	}
	if said[0] != r.Path || said[1] != r.Common ||
		parent(said[2]) != filepath.Join(r.Common, "worktrees") {
		return g, "", errors.New("it is no longer the worktree that was made")
	}
	return g, said[2], nil
}

// checkOperation checks that git is not in the middle of something.
func (r *Repository) checkOperation(_ context.Context, _ git, own string) error {
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG",
		"rebase-merge", "rebase-apply", "sequencer", "index.lock", "HEAD.lock"} {
		if _, err := os.Lstat(filepath.Join(own, name)); !os.IsNotExist(err) {
			return fmt.Errorf("git is in the middle of something there (%s): end it", name)
		}
	}
	return nil
}

// checkHead checks that all commits are on a branch, and that nothing else points at commits that
// would go with the worktree.
func (r *Repository) checkHead(ctx context.Context, g git, _ string) error {
	own, err := g.line(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/worktree",
		"refs/bisect", "refs/rewritten")
	if err != nil {
		return err
	}
	if own != "" {
		return fmt.Errorf("its own reference %s would be lost", text.Printable(own))
	}
	if _, err := g.output(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil {
		_, err := g.output(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		return err // an unborn branch is refused too
	}
	kept, err := g.line(ctx, "for-each-ref", "--count=1", "--contains=HEAD", "--format=%(refname)",
		"refs/heads", "refs/tags", "refs/remotes")
	if err == nil && kept == "" {
		err = fmt.Errorf("its last commit is on no branch: keep it with git -C %s branch NEW-NAME",
			text.ShellWord(r.Path))
	}
	return err
}

// checkSubmodules checks that no submodule has content.
func (r *Repository) checkSubmodules(ctx context.Context, g git, own string) error {
	entries, err := os.ReadDir(filepath.Join(own, "modules"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	populated := len(entries) > 0
	staged, err := g.output(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(staged, "\x00") {
		mode, path, _ := strings.Cut(entry, "\t")
		if strings.HasPrefix(mode, "160000 ") {
			_, err := os.Lstat(filepath.Join(r.Path, filepath.FromSlash(path), ".git"))
			populated = populated || !os.IsNotExist(err)
		}
	}
	if populated {
		return fmt.Errorf("a submodule in it has content: look at it, and then run git -C %s submodule "+
			"deinit --all", text.ShellWord(r.Path))
	}
	return nil
}

// checkHidden checks that git was not told to overlook changes of a file.
func (r *Repository) checkHidden(ctx context.Context, g git, _ string) error {
	list, err := g.output(ctx, "ls-files", "-v", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(list, "\x00") {
		tag, path, ok := strings.Cut(entry, " ")
		if !ok || tag == "H" {
			continue
		}
		_, err := os.Lstat(filepath.Join(r.Path, filepath.FromSlash(path)))
		if tag == "S" && os.IsNotExist(err) {
			continue // of a sparse checkout
		}
		return fmt.Errorf("git overlooks changes of %s there, or it has a conflict",
			text.Printable(path))
	}
	return nil
}

// checkChanges checks that everything is committed.
func (r *Repository) checkChanges(ctx context.Context, g git, _ string) error {
	changes, err := g.output(ctx, "status", "--porcelain", "-z", "--no-renames",
		"--untracked-files=all", "--ignore-submodules=none")
	if err != nil {
		return err
	}
	if n := strings.Count(changes, "\x00"); n > 0 {
		return fmt.Errorf("it has %s: commit them, or see git -C %s status",
			text.Count(n, "uncommitted change", "uncommitted changes"), text.ShellWord(r.Path))
	}
	return nil
}

// checkIgnored checks that there are no ignored files but unchanged copies.
func (r *Repository) checkIgnored(ctx context.Context, g git, _ string) error {
	list, err := g.output(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(r.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	var others []string
	for name := range strings.SplitSeq(list, "\x00") {
		if name != "" && (r.Copied[name] == "" || digestOf(root, name) != r.Copied[name]) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("it has %s: %s; to delete them, run git -C %s clean -Xdi",
		text.Count(len(others), "ignored file", "ignored files"),
		text.Line(strings.Join(others, ", "), 300), text.ShellWord(r.Path))
}
