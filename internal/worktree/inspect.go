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
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// checkRemoval returns why the worktree, which lies at a path for the moment, must not be removed,
// or nil. What cannot be found out counts as a reason.
func (r *Repository) checkRemoval(ctx context.Context, at string) error {
	if err := r.checkRegistration(ctx, at); err != nil || !exists(at) {
		return err
	}
	if users := usersOf(at); len(users) > 0 {
		return fmt.Errorf("it is in use by %s: close the session, or leave the folder",
			strings.Join(users, ", "))
	}
	g, own, err := r.identify(ctx, at)
	if err != nil {
		return err
	}
	if name := underWay(own); name != "" {
		return fmt.Errorf("git is in the middle of something there (%s): end it", name)
	}
	for _, check := range []func(context.Context, git, string) error{
		r.checkHead, r.checkReflog, r.checkSubmodules, r.checkHidden, r.checkChanges,
		r.checkIgnored,
	} {
		if err := check(ctx, g, own); err != nil {
			return err
		}
	}
	return nil
}

// checkRegistration checks that the worktree is there and git knows it, or neither.
func (r *Repository) checkRegistration(ctx context.Context, at string) error {
	if !exists(r.Common) {
		if !exists(at) {
			return nil
		}
		return fmt.Errorf("its repository %s is gone, so it is not known what would be lost: "+
			"bring it back, move the worktree away, or, if the repository was moved, run git -C "+
			"NEW-FOLDER worktree repair %s", text.Printable(r.Common), text.ShellWord(r.Path))
	}
	common, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	lock, known, err := lockOf(ctx, common, r.Path)
	command := "git -C " + text.ShellWord(r.Common) + " worktree "
	switch {
	case err != nil:
		return err
	case !exists(at) && known:
		return fmt.Errorf("it was moved or deleted, and git still knows it: move it back, or run "+
			"%s", command+"remove -f -f "+text.ShellWord(r.Path))
	case !exists(at):
		return nil
	case !known:
		return errors.New("git does not know it: it was moved or replaced")
	case lock != lockReason(r.Branch):
		return fmt.Errorf("acp-agent did not lock it: remove it with %s",
			command+"remove "+text.ShellWord(r.Path))
	}
	return nil
}

// identify returns how git runs in the worktree, which lies at a path for the moment, and git's
// directory for it. It fails if that is not the worktree that was made.
func (r *Repository) identify(ctx context.Context, at string) (g git, own string, err error) {
	info, err := os.Lstat(at)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no longer a folder")
	}
	if err != nil {
		return g, "", err
	}
	if g, err = newGit(ctx, at); err != nil {
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
	if said[0] != at || said[1] != r.Common ||
		filepath.Dir(said[2]) != filepath.Join(r.Common, "worktrees") {
		return g, "", errors.New("it is no longer the worktree that acp-agent made")
	}
	return g, said[2], nil
}

// underWay returns the file that tells that git is in the middle of something in the checkout with
// git's directory own, or "".
func underWay(own string) string {
	for _, name := range []string{"MERGE_HEAD", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD",
		"REVERT_HEAD", "BISECT_LOG", "NOTES_MERGE_WORKTREE", "rebase-merge", "rebase-apply",
		"sequencer", "index.lock", "HEAD.lock"} {
		if exists(filepath.Join(own, name)) {
			return name
		}
	}
	return ""
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
	if branch, err := g.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD"); err == nil {
		_, err := g.output(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		if err != nil {
			err = fmt.Errorf("its branch %s has no commit: switch to another one",
				text.Printable(branch))
		}
		return err
	}
	kept, err := g.line(ctx, "for-each-ref", "--count=1", "--contains=HEAD", "--format=%(refname)",
		"refs/heads", "refs/tags", "refs/remotes")
	if err == nil && kept == "" {
		err = fmt.Errorf("its last commit is on no branch: keep it with git -C %s branch NEW-NAME",
			text.ShellWord(r.Path))
	}
	return err
}

// checkReflog checks that there are no commits that git keeps only because it notes where the head
// of the worktree was. That would go with the worktree; what branches were at stays noted.
func (r *Repository) checkReflog(ctx context.Context, g git, _ string) error {
	noted, err := g.output(ctx, "log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--")
	if err != nil {
		return err
	}
	common, err := newGit(ctx, r.Common)
	if err != nil {
		return err
	}
	const atOnce = 1000 // of the arguments of a command
	for some := range slices.Chunk(leftCommits(noted), atOnce) {
		args := append([]string{"rev-list", "--single-worktree", "--topo-order", "--max-count=1"},
			some...)
		lost, err := common.line(ctx, append(args, "--not", "--all", "--reflog", "--")...)
		if err != nil {
			return err
		}
		if lost != "" {
			command := "git -C " + text.ShellWord(r.Path)
			return fmt.Errorf("its commit %.12s is on no branch: keep it with %s branch NEW-NAME "+
				"%.12s, or forget all such commits with %s reflog expire --expire-unreachable=now "+
				"HEAD", lost, command, lost, command)
		}
	}
	return nil
}

// ofRebase matches what git notes about the steps of a rebase.
var ofRebase = text.Pattern(`^(rebase|pull .*)( \([a-z]+\)|: fast-forward)`)

// leftCommits returns the commits at which the head was, from its reflog, the last first. Left out
// are the current one, those that were amended, and what a rebase made on its way to its result, or
// until it was aborted.
func leftCommits(reflog string) (commits []string) {
	next := ""
	for line := range strings.Lines(reflog) {
		commit, action, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		replaced := strings.HasPrefix(next, "commit (amend)") ||
			ofRebase().MatchString(next) && ofRebase().MatchString(action)
		if next != "" && !replaced {
			commits = append(commits, commit)
		}
		next = cmp.Or(action, "made")
	}
	return commits
}

// checkSubmodules checks that the submodules have nothing that would go with the worktree, in which
// git keeps their repositories: commits that no remote has, and files that are not committed.
func (r *Repository) checkSubmodules(ctx context.Context, g git, own string) error {
	// A submodule that was checked out earlier has its repository there too.
	check := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !exists(filepath.Join(path, "HEAD")) ||
			!exists(filepath.Join(path, "objects")) {
			return err
		}
		return checkPushed(ctx, path)
	}
	err := filepath.WalkDir(filepath.Join(own, "modules"), check)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	staged, err := g.output(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(staged, "\x00") {
		mode, path, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(mode, "160000 ") {
			continue
		}
		dir := filepath.Join(g.dir, filepath.FromSlash(path))
		if err := r.checkSubmodule(ctx, dir); err != nil {
			return fmt.Errorf("its submodule %s: %w", text.Printable(path), err)
		}
	}
	return nil
}

// checkSubmodule checks the folder of a submodule, and the submodules in it.
func (r *Repository) checkSubmodule(ctx context.Context, dir string) error {
	if !exists(filepath.Join(dir, ".git")) {
		files, err := os.ReadDir(dir)
		if len(files) > 0 {
			return errors.New("it is not checked out, but has files: move them away")
		}
		return err
	}
	g, err := newGit(ctx, dir, "GIT_WORK_TREE="+dir) // its settings may name an earlier path
	if err != nil {
		return err
	}
	files, err := g.output(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--ignored",
		"--ignore-submodules=dirty")
	if err != nil {
		return err
	}
	if files != "" {
		return fmt.Errorf("it has files that are not committed: commit them, or see git -C %s "+
			"status --ignored", text.ShellWord(dir))
	}
	own, err := g.line(ctx, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return err
	}
	return cmp.Or(checkPushed(ctx, nativePath(own)), r.checkSubmodules(ctx, g, nativePath(own)))
}

// checkPushed checks that a remote has all commits of the repository in a directory of git.
func checkPushed(ctx context.Context, dir string) error {
	g, err := newGit(ctx, dir, "GIT_DIR="+dir, "GIT_WORK_TREE="+dir)
	if err != nil {
		return err
	}
	lost, err := g.line(ctx, "rev-list", "--max-count=1", "HEAD", "--all", "--reflog", "--not",
		"--remotes")
	if err == nil && lost != "" {
		err = fmt.Errorf("no remote has its commit %.12s: push it, such as with git --git-dir %s "+
			"push origin %[1]s:refs/heads/NEW-NAME", lost, text.ShellWord(dir))
	}
	return err
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
		_, err := os.Lstat(filepath.Join(g.dir, filepath.FromSlash(path)))
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
	changes, err := g.changes(ctx) // checkSubmodules has looked into them
	if err != nil {
		return err
	}
	if err := r.checkNested(strings.Split(changes, "\x00")); err != nil {
		return err
	}
	if n := strings.Count(changes, "\x00"); n > 0 {
		return fmt.Errorf("it has %s: commit them, or see git -C %s status",
			text.Count(n, "uncommitted change", "uncommitted changes"), text.ShellWord(r.Path))
	}
	return nil
}

// checkNested checks that no entry of a list of untracked files is another repository, which git
// neither commits nor cleans away.
func (r *Repository) checkNested(entries []string) error {
	for _, entry := range entries {
		if path, ok := strings.CutSuffix(strings.TrimPrefix(entry, "?? "), "/"); ok {
			return fmt.Errorf("another repository lies in it: move %s away",
				text.Printable(filepath.Join(r.Path, filepath.FromSlash(path))))
		}
	}
	return nil
}

// checkIgnored checks that there are no ignored files but unchanged copies.
func (r *Repository) checkIgnored(ctx context.Context, g git, _ string) error {
	list, err := g.output(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(g.dir)
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
	if err := r.checkNested(others); err != nil {
		return err
	}
	return fmt.Errorf("it has %s: %s; to delete them, run git -C %s clean -Xdi",
		text.Count(len(others), "ignored file", "ignored files"),
		text.Line(strings.Join(others, ", "), 300), text.ShellWord(r.Path))
}
