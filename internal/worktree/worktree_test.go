package worktree_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dirtest.InMemory()) }

var timeLongAgo = time.Unix(1000000000, 0)

// stage is a directory with repositories and folders of a user.
type stage struct {
	t        *testing.T
	dir      string
	registry *worktree.Registry
}

func newStage(t *testing.T) *stage {
	dir := dirtest.New(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gitconfig"),
		[]byte("[user]\n\tname = a\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n\ttemplateDir =\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "gitconfig"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return &stage{t, dir, worktree.NewRegistry(filepath.Join(dir, "state"), filepath.Join(dir, "trees"))}
}

// path returns a path in the directory of the test, unless it is absolute.
func (s *stage) path(names ...string) string {
	name := filepath.Join(names...)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

func (s *stage) write(name, content string) string {
	s.t.Helper()
	path := s.path(name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(content), 0o700))
	return path
}

// git runs git in a directory of the stage.
func (s *stage) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.tryGit(dir, args...)
	require.NoError(s.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(out)
}

// tryGit runs git, which may fail.
func (s *stage) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir = s.path(dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// repository makes a repository with a commit of file.txt and sub/file.txt.
func (s *stage) repository(name string) string {
	s.t.Helper()
	return s.plant("committed", name, func() { s.initialize(name) })
}

// initialize makes such a repository with options of git init.
func (s *stage) initialize(name string, options ...string) {
	s.t.Helper()
	s.write(filepath.Join(name, "file.txt"), "one\n")
	s.write(filepath.Join(name, "sub", "file.txt"), "two\n")
	s.git(name, append([]string{"init", "-q"}, options...)...)
	s.git(name, "add", ".")
	s.git(name, "commit", "-q", "-m", "first")
}

// planted are the files of directories that were made with git.
var planted = map[string]map[string]string{}

// plant makes a directory with make, or copies one of the same kind, and returns its path.
func (s *stage) plant(kind, name string, make func()) string {
	s.t.Helper()
	if planted[kind] == nil {
		make()
		planted[kind] = s.contents(s.path(name))
	}
	for file, content := range planted[kind] {
		s.write(filepath.Join(name, file), content)
	}
	return s.path(name)
}

func (s *stage) folder(name string) string {
	require.NoError(s.t, os.MkdirAll(s.path(name), 0o700))
	return s.path(name)
}

// plan plans worktrees for folders.
func (s *stage) plan(name string, patterns []string, folders ...string) (*worktree.Plan, error) {
	return s.registry.Plan(s.t.Context(), name, rootsOf(s.t, folders), worktree.Options{Copy: patterns})
}

func rootsOf(t *testing.T, folders []string) workspace.Roots {
	roots, err := workspace.NewRoots(folders[0], folders[1:])
	require.NoError(t, err)
	return roots
}

// make makes worktrees, which must be possible.
func (s *stage) make(name string, folders ...string) worktree.Task {
	s.t.Helper()
	p, err := s.plan(name, nil, folders...)
	require.NoError(s.t, err)
	task, err := p.Make(s.t.Context())
	require.NoError(s.t, err)
	return task
}

// tasks returns the recorded tasks.
func (s *stage) tasks() (all []worktree.Task) {
	s.t.Helper()
	for task, err := range s.registry.All() {
		require.NoError(s.t, err)
		all = append(all, task.Follow())
	}
	return all
}

// contents returns all files below a directory with their content.
func (s *stage) contents(dir string) map[string]string {
	found := map[string]string{}
	require.NoError(s.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		found[rel] = string(content)
		return err
	}))
	return found
}

// paths returns the folders of a task.
func paths(task worktree.Task) (paths []string) {
	for _, f := range task.Folders {
		paths = append(paths, f.Path)
	}
	return paths
}

// Clause G1.
func TestMakeWorktreesOfAllFolders(t *testing.T) {
	s := newStage(t)
	app, other, plain := s.repository("app"), s.repository("x/app"), s.folder("plain")
	s.git("plain", "init", "-q", "inner")
	s.write("app/new.txt", "uncommitted")
	s.write("app/file.txt", "changed")
	before := []map[string]string{s.contents(app), s.contents(other), s.contents(plain)}
	sub := filepath.Join(app, "sub")

	p, err := s.plan("topic/one", nil, app, other, plain, sub)
	require.NoError(t, err)
	require.Equal(t, before, []map[string]string{s.contents(app), s.contents(other), s.contents(plain)})
	require.NoDirExists(t, s.path("state"))
	require.NoDirExists(t, s.path("trees"))
	described := p.Describe()
	require.Contains(t, described[0], plain+" is in no git repository and is shared")
	require.Contains(t, described[1], "without 2 uncommitted changes")

	task, err := p.Make(t.Context())
	require.NoError(t, err)
	place := s.path("trees", "topic~one")
	require.Equal(t, []string{filepath.Join(place, "app"), filepath.Join(place, "app-2"), plain,
		filepath.Join(place, "app", "sub")}, paths(task))
	require.Equal(t, "topic/one", s.git(task.Folders[0].Path, "branch", "--show-current"))
	require.Equal(t, "one\n", s.contents(task.Folders[0].Path)["file.txt"])
	require.NoFileExists(t, filepath.Join(task.Folders[0].Path, "new.txt"))
	for i, dir := range []string{app, other} {
		now := s.contents(dir)
		for name, content := range before[i] {
			require.Equal(t, content, now[name], name)
		}
		for name := range now {
			if _, was := before[i][name]; !was {
				require.Regexp(t, `^\.git/(worktrees/|refs/heads/topic/one$|logs/refs/heads/topic/one$)`, filepath.ToSlash(name))
			}
		}
	}
	all := s.tasks()
	require.Len(t, all, 1)
	require.Equal(t, paths(task), paths(all[0]))

	// They can be used, and removed when everything is committed.
	tree := task.Folders[0].Path
	s.write(tree+"/more.txt", "more")
	_, err = s.registry.Remove(t.Context(), "topic/one")
	require.ErrorContains(t, err, tree+" was not removed: it has 1 uncommitted change")
	require.DirExists(t, task.Folders[1].Path)
	s.git(tree, "add", ".")
	s.git(tree, "commit", "-q", "-m", "second")
	_, err = s.registry.Remove(t.Context(), "topic/one")
	require.NoError(t, err)
	require.NoDirExists(t, place)
	require.Equal(t, "second", s.git("app", "log", "-1", "--format=%s", "topic/one"))
	require.NotContains(t, s.git("app", "worktree", "list"), "topic")
	require.Empty(t, s.tasks())
}

// Nothing that a repository names runs, whatever is done.
//
// Clause G1.
func TestRepositoriesRunNothing(t *testing.T) {
	s := newStage(t)
	canary := s.path("canary")
	run := "echo \"$0 $*\" >>" + canary + "; cat"
	tool := s.write("tool", "#!/bin/sh\n"+run+"\n")
	app := s.repository("app")
	s.write("app/.gitattributes", "*.txt filter=evil\n*.md filter=a=b\n")
	s.write("app/x.md", "text")
	s.write("app/deep/.gitattributes", "*.bin filter=lfs\n")
	s.write("app/deep/x.bin", "version https://git-lfs.github.com/spec/v1")
	s.write("app/.worktreeinclude", "*")
	s.git("app", "add", ".")
	s.git("app", "commit", "-q", "-m", "attributes")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit"} {
		s.write("app/.git/hooks/"+hook, "#!/bin/sh\n"+run+"\n")
	}
	for _, c := range [][2]string{
		{"core.fsmonitor", tool}, {"filter.evil.smudge", tool}, {"filter.evil.clean", tool}, {"filter.evil.required", "true"},
		{"filter.a=b.smudge", tool}, {"filter.a=b.clean", tool}, {"filter.evil.process", tool}, {"filter.lfs.smudge", tool}, {"filter.lfs.required", "true"},
		{"core.sshCommand", tool},
		{"hook.x.command", tool}, {"hook.x.event", "post-checkout"}, {"core.pager", tool}, {"diff.external", tool},
		{"remote.origin.url", "ext::" + tool}, {"remote.origin.promisor", "true"}, {"core.editor", tool}, {"gpg.program", tool},
		{"protocol.ext.allow", "always"}, {"submodule.recurse", "true"}, {"core.askPass", tool}, {"log.showSignature", "true"},
	} {
		s.git("app", "config", c[0], c[1])
	}
	signed := strings.Replace(s.git("app", "cat-file", "commit", "HEAD"), "\n\n",
		"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n", 1)
	commit := s.git("app", "hash-object", "-t", "commit", "-w", s.write("signed", signed))
	s.git("app", "update-ref", "HEAD", commit)
	require.NoError(t, os.RemoveAll(canary)) // update-ref runs a hook
	require.NoError(t, os.Chtimes(filepath.Join(app, "file.txt"), timeLongAgo, timeLongAgo))
	require.NoError(t, os.Chtimes(filepath.Join(app, "x.md"), timeLongAgo, timeLongAgo))
	p, err := s.plan("safe", []string{"*"}, app)
	require.NoError(t, err)
	described := strings.Join(p.Describe(), "\n")
	require.Contains(t, described, "the filter evil was not applied")
	require.Contains(t, described, "files in Git LFS are only references")
	require.Contains(t, described, "its .worktreeinclude is not read")
	task, err := p.Make(t.Context())
	require.NoError(t, err)
	require.Equal(t, "one\n", s.contents(task.Folders[0].Path)["file.txt"])
	require.NoError(t, os.Chtimes(filepath.Join(task.Folders[0].Path, "file.txt"), timeLongAgo, timeLongAgo))
	_, err = s.registry.Remove(t.Context(), "safe")
	require.NoError(t, err)
	require.NoFileExists(t, canary)
	checkout := exec.CommandContext(t.Context(), "git", "checkout", "-q", "-f", "safe")
	checkout.Dir = app
	_ = checkout.Run() // the canary works
	require.FileExists(t, canary)
}

// What cannot be done is refused before anything is made, and says why.
//
// Clause G1.
func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(s *stage) (name string, folders []string)
		says    string
	}{
		"a bare repository": {func(s *stage) (string, []string) {
			s.folder("bare.git")
			s.git("bare.git", "init", "-q", "--bare")
			return "x", []string{s.path("bare.git")}
		}, "it is a bare repository"},
		"git's own directory": {func(s *stage) (string, []string) {
			return "x", []string{filepath.Join(s.repository("app"), ".git")}
		}, "git's own directory in one"},
		"a folder that is not committed": {func(s *stage) (string, []string) {
			s.repository("app")
			return "x", []string{s.folder("app/new")}
		}, "is not in its last commit"},
		"a branch that is in the way": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.git("app", "branch", "x")
			return "x/y", []string{app}
		}, "the branch x exists"},
		"branches below the name": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.git("app", "branch", "x/y")
			return "x", []string{app}
		}, "the branch x/y exists"},
		"two checkouts of one repository": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.git("app", "worktree", "add", "-q", "-b", "other", s.path("elsewhere"))
			return "x", []string{app, s.path("elsewhere")}
		}, "is a checkout of the same repository"},
		"no repository": {func(s *stage) (string, []string) {
			return "x", []string{s.folder("plain")}
		}, "none of the folders"},
		"a folder that is gone": {func(s *stage) (string, []string) {
			return "x", []string{s.repository("app"), s.path("missing")}
		}, "there is no folder"},
		"a broken repository": {func(s *stage) (string, []string) {
			s.write("app/.git", "gitdir: /nowhere\n")
			return "x", []string{s.path("app")}
		}, "/nowhere"},
		"a checkout that is elsewhere": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.git("app", "config", "core.worktree", s.dir)
			return "x", []string{app}
		}, "which is not a checkout around it"},
		"worktrees in the repository": {func(s *stage) (string, []string) {
			s.git(".", "init", "-q")
			s.git(".", "commit", "-q", "--allow-empty", "-m", "all")
			return "x", []string{s.dir}
		}, "would lie in this repository"},
		"an old git": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.t.Setenv("PATH", filepath.Dir(s.write("old/git", "#!/bin/sh\necho git version 2.35.1.windows.2\n"))+":"+os.Getenv("PATH"))
			return "x", []string{app}
		}, "worktrees need git 2.36 or newer, and this is git version 2.35.1"},
		"no git": {func(s *stage) (string, []string) {
			app := s.repository("app")
			s.t.Setenv("PATH", s.path("nothing"))
			return "x", []string{app}
		}, "worktrees need git"},
		"a repository of another user": {func(s *stage) (string, []string) {
			if os.Getuid() != 0 {
				s.t.Skip("only root can give files away")
			}
			app := s.repository("app")
			require.NoError(s.t, os.Chown(app, 1234, 1234))
			require.NoError(s.t, os.Chown(filepath.Join(app, ".git"), 1234, 1234))
			return "x", []string{app}
		}, "safe.directory"},
		"a taken name": {func(s *stage) (string, []string) {
			s.make("x", s.repository("other"))
			return "x", []string{s.repository("app")}
		}, "there are worktrees x already"},
		"options as a name":             {func(s *stage) (string, []string) { return "--force", []string{s.repository("app")} }, "cannot be the name"},
		"an earlier branch":             {func(s *stage) (string, []string) { return "@{-1}", []string{s.repository("app")} }, "cannot be the name"},
		"a name that is long in a path": {func(s *stage) (string, []string) { return strings.Repeat("ü", 50), []string{s.repository("app")} }, "cannot be the name"},
		"HEAD as a name":                {func(s *stage) (string, []string) { return "HEAD", []string{s.repository("app")} }, "cannot be the name"},
		"a hidden character":            {func(s *stage) (string, []string) { return "a\u202eb", []string{s.repository("app")} }, "cannot be the name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			name, folders := c.prepare(s)
			before := s.contents(s.dir)
			_, err := s.plan(name, nil, folders...)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, s.contents(s.dir))
		})
	}
}

// What git allows, with odd names and kinds of checkouts, works.
func TestKindsOfRepositories(t *testing.T) {
	for name, prepare := range map[string]func(s *stage) string{
		"odd characters": func(s *stage) string { return s.repository("a b'\"$(x)ü\n*") },
		"a detached head": func(s *stage) string {
			app := s.repository("app")
			s.git("app", "checkout", "-q", "--detach")
			return app
		},
		"a worktree of a bare repository": func(s *stage) string {
			s.repository("app")
			s.git(".", "clone", "-q", "--bare", "app", "bare.git")
			s.git("bare.git", "worktree", "add", "-q", "-b", "other", s.path("tree"))
			return s.path("tree")
		},
		"a submodule": func(s *stage) string {
			s.repository("lib")
			s.repository("app")
			s.git("app", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", s.path("lib"), "lib")
			return s.path("app/lib")
		},
		"a repository in another": func(s *stage) string {
			s.repository("app")
			return s.repository("app/inner")
		},
		"a sparse checkout": func(s *stage) string {
			app := s.repository("app")
			s.git("app", "sparse-checkout", "set", "sub")
			return app
		},
		"a link to it": func(s *stage) string {
			require.NoError(s.t, os.Symlink(s.repository("app"), s.path("link")))
			return s.path("link")
		},
		"the middle of a merge": func(s *stage) string {
			app := s.repository("app")
			require.NoError(s.t, os.WriteFile(filepath.Join(app, ".git/MERGE_HEAD"), []byte(s.git(app, "rev-parse", "HEAD")+"\n"), 0o600))
			p, err := s.plan("töpic", nil, app)
			require.NoError(s.t, err)
			require.Contains(s.t, strings.Join(p.Describe(), "\n"), "in the middle of something there (MERGE_HEAD)")
			return app
		},
		"sha256": func(s *stage) string {
			s.initialize("app", "--object-format=sha256")
			return s.path("app")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			task := s.make("töpic", prepare(s))
			tree := task.Folders[0].Path
			require.Equal(t, "töpic", s.git(tree, "branch", "--show-current"))
			require.Contains(t, s.contents(tree), filepath.Join("sub", "file.txt"))
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "second")
			_, err := s.registry.Remove(t.Context(), "töpic")
			require.NoError(t, err)
			require.NoDirExists(t, tree)
		})
	}
}

// After an error everything is as before.
//
// Clause G1.
func TestMakeIsAllOrNothing(t *testing.T) {
	for name, spoil := range map[string]func(s *stage, second string){
		"the branch appears": func(s *stage, second string) { s.git(second, "branch", "x") },
		"the second cannot be read": func(s *stage, second string) {
			object := s.git(second, "rev-parse", "HEAD:file.txt")
			require.NoError(s.t, os.Remove(filepath.Join(second, ".git/objects", object[:2], object[2:])))
		},
		"the repository is gone": func(s *stage, second string) { require.NoError(s.t, os.RemoveAll(second)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			first, second := s.repository("first"), s.repository("second")
			p, err := s.plan("x", nil, first, second)
			require.NoError(t, err)
			spoil(s, second)
			before := s.contents(s.dir)
			_, err = p.Make(t.Context())
			require.ErrorContains(t, err, second)
			require.NotContains(t, err.Error(), "undone")
			require.Equal(t, before, s.contents(s.dir))
			require.NotContains(t, s.git("first", "worktree", "list"), "trees")
		})
	}
}

// Of several that make the same at once, one does.
func TestConcurrentMake(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	roots := rootsOf(t, []string{app})
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		all.Go(func() {
			p, err := s.registry.Plan(t.Context(), "x", roots, worktree.Options{})
			if err == nil {
				_, err = p.Make(t.Context())
			}
			errs[i] = err
		})
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	require.Len(t, failed, 3, "%v", errors.Join(failed...))
	_, err := s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)
}

// Removing refuses whatever could be lost.
//
// Clause G2.
func TestRemoveRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *stage, app, tree string)
		says  string
	}{
		"an untracked file": {func(s *stage, _, tree string) {
			require.NoError(s.t, os.WriteFile(tree+"/new.txt", nil, 0o600))
			s.git(tree, "config", "status.showUntrackedFiles", "no")
		}, "uncommitted"},
		"a staged change": {func(s *stage, _, tree string) { s.git(tree, "rm", "-q", "file.txt") }, "uncommitted"},
		"an ignored file": {func(s *stage, _, tree string) {
			s.write("app/.git/info/exclude", "*.log\n")
			require.NoError(s.t, os.WriteFile(tree+"/a.log", nil, 0o600))
		}, "ignored file: a.log"},
		"a file whose changes are hidden": {func(s *stage, _, tree string) {
			s.git(tree, "update-index", "--assume-unchanged", "file.txt")
			require.NoError(s.t, os.WriteFile(tree+"/file.txt", []byte("changed"), 0o600))
		}, "overlooks changes"},
		"a file that is said to be absent": {func(s *stage, _, tree string) {
			s.git(tree, "update-index", "--skip-worktree", "file.txt")
			require.NoError(s.t, os.WriteFile(tree+"/file.txt", []byte("changed"), 0o600))
		}, "overlooks changes"},
		"a commit on no branch": {func(s *stage, _, tree string) {
			s.git(tree, "checkout", "-q", "--detach")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "lost")
		}, "is on no branch"},
		"a bisection":        {func(s *stage, _, tree string) { s.git(tree, "bisect", "start", "-q") }, "in the middle"},
		"its own references": {func(s *stage, _, tree string) { s.git(tree, "update-ref", "refs/worktree/x", "HEAD") }, "refs/worktree/x"},
		"an unborn branch":   {func(s *stage, _, tree string) { s.git(tree, "symbolic-ref", "HEAD", "refs/heads/none") }, "its branch none has no commit: switch to another one"},
		"another lock": {func(s *stage, app, tree string) {
			s.git(app, "worktree", "unlock", tree)
			s.git(app, "worktree", "lock", tree, "--reason", "mine")
		}, "acp-agent did not lock it"},
		"a move": {func(s *stage, app, tree string) {
			s.git(app, "worktree", "unlock", tree)
			s.git(app, "worktree", "move", tree, s.path("moved"))
			require.NoError(s.t, os.MkdirAll(tree, 0o700))
		}, "git does not know it"},
		"a link in its place": {func(s *stage, _, tree string) {
			require.NoError(s.t, os.Rename(tree, s.path("moved")))
			require.NoError(s.t, os.Symlink(s.path("moved"), tree))
		}, "no longer a folder"},
		"another repository in its place": {func(s *stage, _, tree string) {
			require.NoError(s.t, os.Remove(tree+"/.git"))
			s.git(tree, "init", "-q")
		}, "no longer the worktree"},
		"a damaged index": {func(s *stage, _, tree string) {
			require.NoError(s.t, os.WriteFile(s.git(tree, "rev-parse", "--git-dir")+"/index", []byte("bad"), 0o600))
		}, "index"},
		"a commit in a submodule that is no longer checked out": {func(s *stage, _, tree string) {
			s.git(s.submodule(tree), "commit", "-q", "--allow-empty", "-m", "lost")
			s.git(tree, "submodule", "--quiet", "deinit", "--force", "--all")
		}, "no remote has its commit"},
		"a file in a submodule": {func(s *stage, _, tree string) {
			s.write(s.submodule(tree)+"/new.txt", "")
		}, "its submodule my/lib: it has files that are not committed"},
		"an ignored file in a submodule": {func(s *stage, _, tree string) {
			lib := s.submodule(tree)
			s.write(s.git(lib, "rev-parse", "--git-path", "info/exclude"), "*.log\n")
			s.write(lib+"/a.log", "")
		}, "its submodule my/lib: it has files that are not committed"},
		"a file in the folder of a submodule": {func(s *stage, _, tree string) {
			s.submodule(tree)
			s.git(tree, "submodule", "--quiet", "deinit", "--all")
			s.write(tree+"/my/lib/new.txt", "")
		}, "its submodule my/lib: it is not checked out, but has files"},
		"an ignored repository": {func(s *stage, app, tree string) {
			s.write("app/.git/info/exclude", "vendor\n")
			s.git(tree, "init", "-q", "vendor/inner")
			s.write(tree+"/vendor/inner/file", "")
		}, "another repository lies in it: move "},
		"a commit of an aborted rebase": {func(s *stage, _, tree string) {
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "second")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "third")
			s.rebase(tree, "2s/pick/edit/")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "lost")
			s.git(tree, "rebase", "--abort")
		}, "is on no branch"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			app := s.repository("app")
			task := s.make("x", app)
			c.spoil(s, app, task.Folders[0].Path)
			before := s.contents(s.dir)
			_, err := s.registry.Remove(t.Context(), "x")
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, s.contents(s.dir))
			require.Len(t, s.tasks(), 1)
		})
	}
}

// submodule adds a submodule to a worktree, commits it, and returns its path.
func (s *stage) submodule(tree string) string {
	s.t.Helper()
	s.repository("lib")
	s.git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", s.path("lib"), "my/lib")
	s.git(tree, "commit", "-q", "-m", "lib")
	return tree + "/my/lib"
}

// rebase rebases a branch onto main, with a list of steps that sed edits.
func (s *stage) rebase(tree, edit string) {
	s.t.Helper()
	s.t.Setenv("GIT_SEQUENCE_EDITOR", "sed -i -e "+edit)
	s.t.Setenv("GIT_EDITOR", "true")
	s.git(tree, "rebase", "-q", "--keep-empty", "--interactive", "main")
}

// Commits that a detached head has left are kept, each with the command of the error, or forgotten
// with the other one.
//
// Clause G2.
func TestRemoveFindsWhatADetachedHeadLeft(t *testing.T) {
	commands := regexp.MustCompile(`keep it with (git -C .* branch) NEW-NAME (\w+), or forget all such commits with (git .*)`)
	run := func(s *stage, command string) {
		s.t.Helper()
		out, err := exec.CommandContext(s.t.Context(), "sh", "-c", command).CombinedOutput()
		require.NoError(s.t, err, "%s", out)
	}
	for _, keep := range []bool{true, false} {
		s := newStage(t)
		tree := s.make("x", s.repository("it's app")).Folders[0].Path
		var left []string
		for _, message := range []string{"first", "second"} {
			s.git(tree, "checkout", "-q", "--detach")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "replaced")
			s.git(tree, "commit", "-q", "--allow-empty", "--amend", "-m", message)
			s.git(tree, "commit", "-q", "--allow-empty", "-m", message+" too")
			left = append(left, s.git(tree, "rev-parse", "HEAD"))
			s.git(tree, "checkout", "-q", "x")
		}
		for i := range left {
			_, err := s.registry.Remove(t.Context(), "x")
			require.ErrorContains(t, err, "is on no branch")
			advice := commands.FindStringSubmatch(err.Error())
			if !keep {
				run(s, advice[3])
				break
			}
			require.Contains(t, strings.Join(left, " "), advice[2])
			run(s, advice[1]+" kept-"+strconv.Itoa(i)+" "+advice[2])
		}
		_, err := s.registry.Remove(t.Context(), "x")
		require.NoError(t, err)
		s.git("it's app", "gc", "-q", "--prune=now")
		for _, commit := range left {
			_, err := exec.CommandContext(t.Context(), "git", "-C", s.path("it's app"), "cat-file", "-e", commit).Output()
			require.Equal(t, keep, err == nil)
		}
	}
}

// What git itself keeps, or replaces, holds nothing up.
//
// Clause G2.
func TestRemoveIgnoresWhatIsKept(t *testing.T) {
	for name, work := range map[string]func(s *stage, app, tree string){
		"an amend of a detached head that a branch keeps": func(s *stage, _, tree string) {
			s.git(tree, "checkout", "-q", "--detach")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "replaced")
			s.git(tree, "commit", "-q", "--allow-empty", "--amend", "-m", "kept")
			s.git(tree, "branch", "other")
			s.git(tree, "checkout", "-q", "x")
		},
		"a reset": func(s *stage, _, tree string) { s.git(tree, "reset", "-q", "--hard", "HEAD^") },
		"a rebase that combines commits": func(s *stage, _, tree string) {
			s.rebase(tree, "'1s/pick/reword/;2s/pick/squash/;3s/pick/fixup/;4s/pick/edit/'")
			s.git(tree, "commit", "-q", "--allow-empty", "--amend", "-m", "edited")
			s.git(tree, "rebase", "--continue")
		},
		"an aborted rebase": func(s *stage, _, tree string) {
			s.rebase(tree, "'2s/pick/squash/;4s/pick/edit/'")
			s.git(tree, "rebase", "--abort")
		},
		"a stash": func(s *stage, app, tree string) {
			require.NoError(s.t, os.WriteFile(tree+"/file.txt", []byte("changed"), 0o600))
			s.git(tree, "stash", "-q")
		},
		"a tag": func(s *stage, _, tree string) {
			s.git(tree, "checkout", "-q", "--detach")
			s.git(tree, "commit", "-q", "--allow-empty", "-m", "tagged")
			s.git(tree, "tag", "v1")
			s.git(tree, "checkout", "-q", "x")
		},
		"a submodule": func(s *stage, _, tree string) { s.submodule(tree) },
		"a submodule with commits that were pushed as the error says": func(s *stage, _, tree string) {
			s.git(s.submodule(tree), "commit", "-q", "--allow-empty", "-m", "kept")
			s.git(tree, "commit", "-q", "-am", "new lib")
			_, err := s.registry.Remove(s.t.Context(), "x")
			_, command, _ := strings.Cut(err.Error(), "such as with ")
			out, err := exec.CommandContext(s.t.Context(), "sh", "-c", command).CombinedOutput()
			require.NoError(s.t, err, "%s", out)
		},
		"a submodule that is no longer checked out": func(s *stage, _, tree string) {
			s.submodule(tree)
			s.git(tree, "submodule", "--quiet", "deinit", "--all")
		},
		"a repository that was moved as the error says": func(s *stage, _, tree string) {
			s.git(tree, "init", "-q", "inner repository")
			_, err := s.registry.Remove(s.t.Context(), "x")
			require.ErrorContains(s.t, err, "move "+tree+"/inner repository away")
			require.NoError(s.t, os.Rename(tree+"/inner repository", s.path("moved")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			app := s.repository("app")
			tree := s.make("x", app).Folders[0].Path
			for _, file := range []string{"a", "b", "c", "d", "e"} {
				require.NoError(t, os.WriteFile(filepath.Join(tree, file), nil, 0o600))
				s.git(tree, "add", ".")
				s.git(tree, "commit", "-q", "-m", file)
			}
			work(s, app, tree)
			_, err := s.registry.Remove(t.Context(), "x")
			require.NoError(t, err)
			require.NoDirExists(t, tree)
		})
	}
}

// If one of several worktrees must stay, all stay.
//
// Clause G2.
func TestRemoveIsAllOrNothing(t *testing.T) {
	s := newStage(t)
	task := s.make("x", s.repository("first"), s.repository("second"), s.repository("third"))
	s.write("trees/x/second/file.txt", "changed")
	before := s.contents(s.dir)
	_, err := s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, task.Folders[1].Path+" was not removed: it has 1 uncommitted change")
	require.Equal(t, before, s.contents(s.dir))
}

// Ignored files come along only if the user wants it.
func TestIgnoredFiles(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	s.write("app/.gitignore", ".env\nconf/\n*.link\nsecret\n")
	s.git("app", "add", ".gitignore")
	s.git("app", "commit", "-q", "-m", "ignore")
	for _, name := range []string{".env", "conf/a.json", "conf/b.txt", "secret", "plain.env"} {
		s.write("app/"+name, name)
	}
	require.NoError(t, os.Symlink("/etc/passwd", s.path("app/x.link")))
	p, err := s.plan("x", []string{".env", "conf/*.json", "*.link", "plain.env", "../*", "/etc/*"}, app)
	if err != nil { // git refuses a pattern outside
		require.ErrorContains(t, err, "outside repository")
		p, err = s.plan("x", []string{".env", "conf/*.json", "*.link", "plain.env"}, app)
	}
	require.NoError(t, err)
	task, err := p.Make(t.Context())
	require.NoError(t, err)
	tree := task.Folders[0].Path
	require.Equal(t, ".env", s.contents(tree)[".env"])
	require.Len(t, task.Repositories[0].Copied, 2)
	for _, name := range []string{"conf/b.txt", "secret", "plain.env", "x.link"} {
		require.NoFileExists(t, filepath.Join(tree, name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(tree, ".env"), []byte("new"), 0o600))
	_, err = s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, "1 ignored file: .env")
	require.NoError(t, os.WriteFile(filepath.Join(tree, ".env"), []byte(".env"), 0o600))
	_, err = s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)

	for _, name := range []string{".env", "secret"} {
		require.NoError(t, os.Truncate(s.path("app/"+name), 40<<20))
	}
	p, err = s.plan("y", []string{".env", "secret"}, app)
	require.NoError(t, err)
	_, err = p.Make(t.Context())
	require.ErrorContains(t, err, "all of them together have more than")
}

// A branch that exists already is used if the user says so, and stays if making fails.
func TestExistingBranch(t *testing.T) {
	s := newStage(t)
	first, second := s.repository("first"), s.repository("second")
	s.git("first", "checkout", "-q", "-b", "x")
	s.write("first/more.txt", "more")
	s.git("first", "add", ".")
	s.git("first", "commit", "-q", "-m", "second")
	_, err := s.registry.Plan(t.Context(), "x", rootsOf(t, []string{first, second}), worktree.Options{Existing: true})
	require.ErrorContains(t, err, "is checked out in "+first)
	s.git("first", "checkout", "-q", "main")
	_, err = s.plan("x", nil, first, second)
	require.ErrorContains(t, err, "the branch x exists: use another name, or run acp-agent worktree add with --existing")
	for _, lock := range []string{s.path("second/.git/refs/heads/x.lock"), ""} {
		p, err := s.registry.Plan(t.Context(), "x", rootsOf(t, []string{first, second}), worktree.Options{Existing: true})
		require.NoError(t, err)
		require.Contains(t, p.Describe()[0], "the existing branch x")
		require.Contains(t, p.Describe()[1], "a new branch x")
		if lock != "" {
			require.NoError(t, os.WriteFile(lock, nil, 0o600))
			_, err = p.Make(t.Context())
			require.Error(t, err)
			require.NoError(t, os.Remove(lock))
			require.Equal(t, "second", s.git("first", "log", "-1", "--format=%s", "x"))
			continue
		}
		task, err := p.Make(t.Context())
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(task.Folders[0].Path, "more.txt"))
	}
}

// Nothing of others in the folder of a task is removed, and nothing that a process uses.
//
// Clause G2.
func TestRemoveLeavesWhatIsOfOthers(t *testing.T) {
	s := newStage(t)
	task := s.make("x", s.repository("app"))
	notes := s.write("trees/x/notes.txt", "mine")
	_, err := s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, notes+" was not made by acp-agent: move it away")
	require.NoError(t, os.Remove(notes))
	if runtime.GOOS == "linux" {
		user := exec.CommandContext(t.Context(), "sleep", "1000")
		user.Dir = task.Folders[0].Path
		require.NoError(t, user.Start())
		_, err = s.registry.Remove(t.Context(), "x")
		require.ErrorContains(t, err, "in use by sleep")
		require.NoError(t, user.Process.Kill())
		require.Error(t, user.Wait())
	}
	mine := s.write("mine/app/file.txt", "mine")
	require.NoError(t, os.Symlink(s.path("mine"), s.path("trees/.removed.x")))
	_, err = s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, "is not a folder")
	require.FileExists(t, mine)
	require.NoError(t, os.Remove(s.path("trees/.removed.x")))
	_, err = s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)
}

// The folder of a branch is the same in a path and in a URL, and differs from that of any other
// branch.
//
// Clause G1.
func TestFoldersInURLs(t *testing.T) {
	s := newStage(t)
	app, seen := s.repository("app"), map[string]string{}
	for _, name := range []string{"feature/login", "feature-login", "feature+login", "a/2F", "a%2Fb", "x#y", "über/1"} {
		p, err := s.plan(name, nil, app)
		require.NoError(t, err)
		task, err := p.Make(t.Context())
		require.NoError(t, err)
		path := filepath.ToSlash(task.Folders[0].Path)
		require.Empty(t, seen[path], name)
		seen[path] = name
		opened, err := url.Parse("file://" + path)
		require.NoError(t, err)
		require.Equal(t, path, opened.Path)
		unescaped, err := url.PathUnescape(path)
		require.NoError(t, err)
		require.Equal(t, path, unescaped)
		require.DirExists(t, path)
		found, err := s.registry.Find(name)
		require.NoError(t, err)
		require.Equal(t, name, found.Name)
	}
}

// Adding, listing and removing agree on what exists after a user has made a removed folder again.
//
// Clause G2.
func TestFolderMadeAgain(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	tree := s.make("x", app).Folders[0].Path
	_, err := s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(tree, 0o700))
	require.Empty(t, s.tasks())
	_, err = s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, "there are no worktrees")
	_, err = s.registry.Plan(t.Context(), "x", rootsOf(t, []string{app}), worktree.Options{Existing: true})
	require.ErrorContains(t, err, filepath.Dir(tree)+" is in the way, and acp-agent did not make it")
	require.NoError(t, os.RemoveAll(filepath.Dir(tree)))
	_, err = s.registry.Plan(t.Context(), "x", rootsOf(t, []string{app}), worktree.Options{Existing: true})
	require.NoError(t, err)
}

// What a user deletes or moves can be put right with the command of the error, or by putting it
// back.
//
// Clause G2.
func TestWorktreesThatUsersDelete(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	missing := func(what string) {
		t.Helper()
		require.Equal(t, what, s.tasks()[0].Repositories[0].Missing())
	}
	tree := s.make("x", app).Folders[0].Path
	require.NoError(t, os.RemoveAll(tree))
	s.git("app", "worktree", "prune") // spares what is locked
	missing("missing")
	_, err := s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, "move it back, or run git -C "+app+"/.git worktree remove -f -f "+tree)
	s.git("app", "worktree", "remove", "-f", "-f", tree)
	_, err = s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)

	tree = s.make("y", app).Folders[0].Path
	require.NoError(t, os.Rename(app, s.path("moved")))
	missing("original missing")
	_, err = s.registry.Remove(t.Context(), "y")
	require.ErrorContains(t, err, "is gone, so it is not known what would be lost")
	require.DirExists(t, tree)
	require.NoError(t, os.Rename(s.path("moved"), app))
	_, err = s.registry.Remove(t.Context(), "y")
	require.NoError(t, err)

	tree = s.make("z", app).Folders[0].Path
	require.NoError(t, os.RemoveAll(app))
	require.NoError(t, os.RemoveAll(tree))
	_, err = s.registry.Remove(t.Context(), "z")
	require.NoError(t, err)
}

// If a worktree lies in another one, the inner one counts, but not one that no repository lists.
func TestOriginsOfNestedWorktrees(t *testing.T) {
	s := newStage(t)
	app, other := s.repository("app"), s.repository("other")
	tree := s.make("x", app).Folders[0].Path
	s.git("other", "worktree", "add", "-q", tree+"/inner")
	require.NoError(t, os.Mkdir(tree+"/forged", 0o700))
	require.NoError(t, os.WriteFile(tree+"/forged/.git", []byte("gitdir: "+other+"/.git/worktrees/inner\n"), 0o600))
	origins, err := s.registry.Origins()
	require.NoError(t, err)
	for dir, want := range map[string]string{tree: app, tree + "/sub": app + "/sub", tree + "/inner/sub": other + "/sub",
		tree + "/forged": app + "/forged", app: ""} {
		dir, err := workspace.ParseDir(dir)
		require.NoError(t, err)
		var of []string
		for _, original := range origins.Of(dir) {
			of = append(of, original.String())
		}
		require.Equal(t, want, strings.Join(of, " "), dir)
	}
}

func TestCancelledMake(t *testing.T) {
	s := newStage(t)
	p, err := s.plan("x", nil, s.repository("app"))
	require.NoError(t, err)
	before := s.contents(s.dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Make(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, s.contents(s.dir))
}

func TestFindUnknown(t *testing.T) {
	s := newStage(t)
	_, err := s.registry.Remove(t.Context(), "none")
	require.ErrorIs(t, err, worktree.ErrNone)
	require.Empty(t, s.tasks())
	s.write("state/bad.json", "{")
	_, err = s.registry.Origins()
	require.ErrorContains(t, err, "bad.json")
}
