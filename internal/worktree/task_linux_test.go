package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/worktree"
)

// run runs a command as a user types it.
func (s *stage) run(command string) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "sh", "-c", command).CombinedOutput()
	require.NoError(s.t, err, "%s: %s", command, out)
}

// threeRepositories makes one with a submodule, one without a commit, and one with a filter and a
// hook. Each has work that is not committed.
func (s *stage) threeRepositories() []string {
	s.git(".", "config", "--global", "protocol.file.allow", "always")
	for key, value := range map[string]string{"clean": "tr A-Z a-z", "smudge": "tr a-z A-Z", "required": "true"} {
		s.git(".", "config", "--global", "filter.case."+key, value)
	}
	s.initialize("lib")
	s.initialize("nested")
	s.git("nested", "submodule", "--quiet", "add", s.path("lib"), "lib")
	s.git("nested", "commit", "-q", "-m", "lib")
	s.write("fresh/mine", "")
	s.git("fresh", "init", "-q")
	s.write("hooked/.gitattributes", "*.txt filter=case\n")
	s.initialize("hooked")
	s.write("hooked/.git/hooks/pre-commit", "#!/bin/sh\ntest ! -e refused\n")
	folders := []string{s.path("nested"), s.path("fresh"), s.path("hooked")}
	for _, folder := range folders {
		s.write(folder+"/unsaved", "work of the user\n")
	}
	s.write("nested/file.txt", "changed by the user\n")
	return folders
}

// A task goes through three repositories, and nothing is lost: two agents work in the worktrees,
// one of them after a rebase, the work is shown, committed and removed, and a process may be killed
// at any point of that. What the program advises is done as it says.
//
// Clause G2.
func TestTaskInThreeRepositories(t *testing.T) {
	s := newStage(t)
	folders := s.threeRepositories()
	_, err := s.plan("x", nil, folders...)
	_, command, found := strings.Cut(err.Error(), "such as with ")
	require.True(t, found, err)
	s.run(command)
	before := map[string]string{}
	for _, folder := range folders {
		before[folder] = s.git(folder, "status", "--porcelain")
	}
	p, err := s.plan("x", nil, folders...)
	require.NoError(t, err)
	task, err := p.Make(t.Context())
	require.NoError(t, err)
	advice := regexp.MustCompile(`(?m)^  .*: (git .*)$`).FindAllStringSubmatch(strings.Join(p.Describe(), "\n"), -1)
	require.Len(t, advice, 2)
	for _, one := range advice {
		s.run(one[1])
	}
	trees := task.Repositories
	require.FileExists(t, trees[0].Path+"/lib/file.txt")
	require.Equal(t, "ONE\n", s.contents(trees[2].Path)["file.txt"])

	work := func(session, file string) {
		for _, r := range trees {
			all := worktree.NewSnapshots(s.path("snapshots"))
			require.NoError(t, all.Take(t.Context(), session, []string{r.Path}))
			s.write(filepath.Join(r.Path, file), session+"\n")
			require.Equal(t, []string{file}, pathsOf(s.since(all.Find(session, r.Path))))
		}
	}
	commit := func() {
		t.Helper()
		s.write(trees[2].Path+"/refused", "")
		_, err := task.Commit(t.Context(), "work")
		require.ErrorContains(t, err, "nothing was committed")
		require.NoError(t, os.Remove(trees[2].Path+"/refused"))
		for n := 1; s.runUntil(n, "COMMIT=1"); n += volume.Of(15, 1) {
			for _, r := range trees {
				require.FileExists(t, r.Path+"/by-one.txt", "killed before command %d", n)
			}
		}
		_, err = task.Commit(t.Context(), "work")
		require.ErrorIs(t, err, worktree.ErrNothing)
	}
	work("one", "by-one.txt")
	commit()
	for i, folder := range folders {
		s.git(folder, "commit", "-q", "--no-verify", "--allow-empty", "-m", "of others")
		s.git(trees[i].Path, "rebase", "-q", s.git(folder, "rev-parse", "HEAD"))
	}
	work("two", "by-two.txt")
	for _, r := range trees {
		require.Equal(t, []string{"by-one.txt", "by-two.txt"}, s.differing(r))
	}
	commit()
	for i, folder := range folders {
		require.Equal(t, "2 ahead", trees[i].Status(t.Context()).String())
		require.Equal(t, before[folder], s.git(folder, "status", "--porcelain"))
	}
	for n := 1; s.runUntil(n, "REMOVE=1"); n += volume.Of(40, 3) {
		_, err := s.registry.Remove(t.Context(), "x")
		require.NoError(t, err, "killed before command %d", n)
		p, err := s.registry.Plan(t.Context(), "x", rootsOf(t, folders), worktree.Options{Existing: true})
		require.NoError(t, err)
		_, err = p.Make(t.Context())
		require.NoError(t, err)
	}
	for _, folder := range folders {
		require.Equal(t, before[folder], s.git(folder, "status", "--porcelain"))
		require.NoDirExists(t, s.path("trees/x"))
		s.git(folder, "merge", "-q", "x")
		for _, file := range []string{"by-one.txt", "by-two.txt", "unsaved"} {
			require.FileExists(t, filepath.Join(folder, file))
		}
	}
}

// A repository that was moved is found again after the command that the error names.
//
// Clause G2.
func TestMovedRepository(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	tree := s.make("x", app).Repositories[0].Path
	require.NoError(t, os.Rename(app, s.path("moved")))
	_, err := s.registry.Remove(t.Context(), "x")
	_, command, _ := strings.Cut(err.Error(), "moved, run ")
	s.run(strings.Replace(command, "NEW-FOLDER", s.path("moved"), 1))
	task, err := s.registry.Find("x")
	require.NoError(t, err)
	r := task.Repositories[0]
	s.write(tree+"/new.txt", "")
	require.Equal(t, []string{"new.txt"}, s.differing(r))
	_, err = task.Commit(t.Context(), "work")
	require.NoError(t, err)
	require.Equal(t, "git -C "+s.path("moved")+" merge x", r.Merge(r.Status(t.Context())))
	_, err = s.registry.Remove(t.Context(), "x")
	require.NoError(t, err)
	require.NoDirExists(t, tree)
	require.Equal(t, "main\nx", s.git("moved", "branch", "--format=%(refname:short)"))
}

// A partial clone that lacks files of a branch says how to get them, before anything is made.
//
// Clause G1.
func TestPartialClone(t *testing.T) {
	s := newStage(t)
	s.repository("origin")
	s.git("origin", "config", "uploadpack.allowFilter", "true")
	s.git("origin", "checkout", "-q", "-b", "x")
	s.write("origin/file.txt", "of the branch\n")
	s.git("origin", "commit", "-q", "-a", "-m", "second")
	s.git("origin", "checkout", "-q", "main")
	s.git(".", "clone", "-q", "--filter=blob:none", "file://"+s.path("origin"), "app")
	s.git("app", "branch", "-q", "x", "origin/x")
	existing := func() (*worktree.Plan, error) {
		return s.registry.Plan(t.Context(), "x", rootsOf(t, []string{s.path("app")}), worktree.Options{Existing: true})
	}
	_, err := existing()
	require.ErrorContains(t, err, "is a partial clone without some files")
	_, command, _ := strings.Cut(err.Error(), "get them with ")
	s.run(command)
	p, err := existing()
	require.NoError(t, err)
	task, err := p.Make(t.Context())
	require.NoError(t, err)
	require.Equal(t, "of the branch\n", s.contents(task.Folders[0].Path)["file.txt"])
}
