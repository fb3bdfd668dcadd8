package confine

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/workspace"
)

// A linked worktree of git, as git worktree add makes it, has a file .git that names a directory in
// its repository, worktrees/NAME, and the file gitdir in that directory names the worktree. The
// index is there, and objects and branches are in the repository. So a process that is granted only
// the worktree cannot commit.
//
// Both files could have been written by a restricted process, to reach the repository with its next
// process. So they are believed only if no restricted process could ever write at least one of the
// two, or if they were believed before.

// LinkedWorktree returns the directory in the repository that belongs to root, a path without
// links, if that is a linked worktree and both name each other.
func LinkedWorktree(root string) (own string, ok bool) {
	text, _ := readLine(root, ".git")
	path, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", false
	}
	at, err := links.Follow(absolute(root, path))
	own = at.Path()
	repository := RepositoryOf(own)
	if err != nil || filepath.Join(repository, "worktrees", filepath.Base(own)) != own {
		return "", false
	}
	if listed, ok := listedWorktree(own); !ok || listed != root {
		return "", false
	}
	common, ok := readLine(own, "commondir")
	if !ok {
		return "", false
	}
	at, err = links.Follow(absolute(own, common))
	return own, err == nil && at.Path() == repository
}

// listedWorktree returns the worktree that the directory own in its repository names.
func listedWorktree(own string) (root string, ok bool) {
	back, ok := readLine(own, "gitdir")
	if !ok || filepath.Base(back) != ".git" {
		return "", false
	}
	at, err := links.Follow(absolute(own, filepath.Dir(back)))
	return at.Path(), err == nil
}

// LinkedWorktrees returns the worktrees that a repository lists, whether or not they name it too.
func LinkedWorktrees(repository string) (roots []string) {
	worktrees := filepath.Join(repository, "worktrees")
	entries, _ := os.ReadDir(worktrees)
	for _, e := range entries {
		if root, ok := listedWorktree(filepath.Join(worktrees, e.Name())); ok {
			roots = append(roots, root)
		}
	}
	return roots
}

// RepositoryOf returns the repository that has the directory own of a linked worktree.
func RepositoryOf(own string) string { return filepath.Dir(filepath.Dir(own)) }

// absolute returns a path of a file in dir.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path // a link before .. must not get lost
}

// readLine returns the only line of a small file in dir, which is not a link.
func readLine(dir, name string) (line string, ok bool) {
	const most = 8 << 10
	text, ok := readSmall(dir, name, most)
	line = strings.TrimRight(string(text), "\r\n")
	return line, ok && line != "" && !strings.ContainsAny(line, "\x00\r\n")
}

// readSmall returns the content of a file in dir that is not a link and has at most a number of
// bytes.
func readSmall(dir, name string, most int64) (text []byte, ok bool) {
	d, err := dirfd.Open(dir)
	if err != nil {
		return nil, false
	}
	defer func() { _ = d.Close() }()
	f, err := d.OpenRegular(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	text, info, err := dirfd.ReadFile(f, nil, most)
	return text, err == nil && info.Size() <= most
}

// grantWorktrees grants what git writes in the repositories of roots that are linked worktrees.
// Their config, hooks and packed-refs, and other worktrees, are not granted.
func (g *grants) grantWorktrees(roots []workspace.Root) error {
	for _, root := range roots {
		own, ok := LinkedWorktree(root.Real.String())
		if !ok || root.Grant == workspace.ReadOnly {
			continue
		}
		believed, err := g.believes(root.Real.String(), own)
		if err != nil {
			return err
		}
		if believed {
			g.grantRepository(own)
		}
	}
	return nil
}

// believes reports whether root really belongs to own, and remembers that it does.
func (g *grants) believes(root, own string) (bool, error) {
	c := forWorktree(root, own)
	if known, err := has(g.consents, c.ID); known || err != nil {
		return known, err
	}
	for _, dir := range []string{root, own} {
		planted, err := g.couldWrite(dir)
		if err != nil {
			return false, err
		}
		if !planted {
			return true, accept(g.consents, c)
		}
	}
	return false, nil
}

// forWorktree returns the consent to follow the file .git of a linked worktree.
func forWorktree(root, own string) consent.Consent {
	return consent.ForLink(filepath.Join(root, ".git"), own)
}

// grantRepository grants what git writes in the repository that has the directory own of a
// worktree. It creates logs, as git does with the first commit in a worktree of a bare repository.
func (g *grants) grantRepository(own string) {
	repository := RepositoryOf(own)
	if _, err := os.Lstat(filepath.Join(repository, "reftable")); err != nil {
		_ = os.Mkdir(filepath.Join(repository, "logs"), 0o777) // git's own mode; it may exist
	}
	dirs := []string{own}
	for _, name := range []string{"objects", "refs", "reftable", "logs"} {
		dirs = append(dirs, filepath.Join(repository, name))
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && !g.policy.Writes(dir) && !g.policy.Keeps(dir) {
			g.grantWriting(dir)
		}
	}
	g.policy.Read = append(g.policy.Read, repository)
}
