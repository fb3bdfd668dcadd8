package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/worktree"
)

// hook makes a hook of a repository.
func (s *stage) hook(repository, name, script string) {
	s.t.Helper()
	path := s.write(filepath.Join(repository, ".git", "hooks", name), "#!/bin/sh\n"+script+"\n")
	require.NoError(s.t, os.Chmod(path, 0o700))
}

// The changes in all repositories are committed with one message, and those without are left alone.
func TestCommit(t *testing.T) {
	s := newStage(t)
	app, lib, idle := s.repository("app"), s.repository("lib"), s.repository("idle")
	task := s.make("task", app, lib, idle)
	_, err := task.Commit(t.Context(), "Work")
	require.ErrorIs(t, err, worktree.ErrNothing)
	s.hook("app", "commit-msg", `echo "Checked: yes" >> "$1"`)
	s.hook("lib", "pre-commit", `git show :new.txt | grep -q x && echo y > made.txt && git add made.txt`)
	for _, r := range task.Repositories[:2] {
		s.write(filepath.Join(r.Path, "new.txt"), "x\n")
		require.NoError(t, os.Remove(filepath.Join(r.Path, "file.txt")))
	}
	made, err := task.Commit(t.Context(), "Work on both\n\nBecause.")
	require.NoError(t, err)
	require.Equal(t, task.Repositories[:2], made)
	require.Equal(t, "Work on both\n\nBecause.\n\nTask: task\nChecked: yes",
		s.git(made[0].Path, "log", "-1", "--format=%B"))
	require.Equal(t, "made.txt", s.git(made[1].Path, "ls-files", "made.txt"))
	require.Equal(t, "task", s.git(made[1].Path, "log", "-1", "--format=%(trailers:key=Task,valueonly)"))
	for _, r := range made {
		require.Equal(t, "1 ahead", r.Status(t.Context()).String())
	}
	_, err = task.Commit(t.Context(), "Again")
	require.ErrorIs(t, err, worktree.ErrNothing)
}

// If one repository cannot commit, none does, and what was staged stays so.
func TestCommitIsAllOrNothing(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *stage, path string)
		want  string
	}{
		"message":  {func(s *stage, _ string) { s.hook("lib", "commit-msg", "echo too short >&2; exit 1") }, "too short"},
		"identity": {func(s *stage, path string) { s.git(path, "config", "user.name", " ") }, "disallowed characters"},
		"head":     {func(s *stage, path string) { s.git(path, "checkout", "-q", "--detach") }, "no branch"},
		"branch":   {func(s *stage, path string) { s.git(path, "branch", "-m", "renamed") }, "it is on the branch renamed"},
		"merge":    {func(s *stage, path string) { s.write(s.git(path, "rev-parse", "--git-path", "MERGE_HEAD"), "x") }, "in the middle of something"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			app, lib := s.repository("app"), s.repository("lib")
			task := s.make("task", app, lib)
			heads := ""
			for _, r := range task.Repositories {
				s.write(filepath.Join(r.Path, "staged.txt"), "x\n")
				s.git(r.Path, "add", "staged.txt")
				s.write(filepath.Join(r.Path, "new.txt"), "x\n")
				heads += s.git(r.Path, "rev-parse", "HEAD")
			}
			test.spoil(s, task.Repositories[1].Path)
			made, err := task.Commit(t.Context(), "Work")
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "nothing was committed: "+task.Repositories[1].Path)
			require.Empty(t, made)
			for _, r := range task.Repositories {
				heads = strings.TrimPrefix(heads, s.git(r.Path, "rev-parse", "HEAD"))
				require.Equal(t, "A  staged.txt\n?? new.txt", s.git(r.Path, "status", "--porcelain"))
			}
			require.Empty(t, heads)
		})
	}
}

// What conflicts, after stash pop for example, is not committed with its marks.
func TestCommitRefusesConflicts(t *testing.T) {
	s := newStage(t)
	task := s.make("task", s.repository("app"), s.repository("lib"))
	for _, r := range task.Repositories {
		s.write(filepath.Join(r.Path, "new.txt"), "x\n")
	}
	path := task.Repositories[1].Path
	s.write(filepath.Join(path, "file.txt"), "stashed\n")
	s.git(path, "stash")
	s.write(filepath.Join(path, "file.txt"), "committed\n")
	s.git(path, "commit", "-qam", "other")
	cmd := exec.CommandContext(t.Context(), "git", "-C", path, "stash", "pop")
	require.Error(t, cmd.Run())
	made, err := task.Commit(t.Context(), "Work")
	require.ErrorContains(t, err, "nothing was committed: "+path+": it has conflicts")
	require.Empty(t, made)
	require.Equal(t, "?? new.txt", s.git(task.Repositories[0].Path, "status", "--porcelain"))
}

// An error after the first commit says which were made, and how to go back.
func TestCommitFailsInTheMiddle(t *testing.T) {
	s := newStage(t)
	app, lib := s.repository("app"), s.repository("lib")
	task := s.make("task", app, lib)
	for _, r := range task.Repositories {
		s.write(filepath.Join(r.Path, "new.txt"), "x\n")
	}
	s.hook("lib", "prepare-commit-msg", "exit 1")
	made, err := task.Commit(t.Context(), "Work")
	require.Equal(t, task.Repositories[:1], made)
	require.ErrorContains(t, err, "git -C "+made[0].Path+" reset --soft HEAD~1")
	require.NoError(t, os.Remove(filepath.Join(lib, ".git", "hooks", "prepare-commit-msg")))
	made, err = task.Commit(t.Context(), "Work")
	require.NoError(t, err)
	require.Equal(t, task.Repositories[1:], made)
}
