package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/worktree"
)

// snapshot takes a snapshot of a folder, and returns it.
func (s *stage) snapshot(folder string) worktree.Snapshot {
	s.t.Helper()
	all := worktree.NewSnapshots(s.path("snapshots"))
	require.NoError(s.t, all.Take(s.t.Context(), "session", []string{s.path(folder)}))
	return all.Find("session", s.path(folder))
}

// since returns what has changed since a snapshot.
func (s *stage) since(one worktree.Snapshot) []worktree.FileChange {
	s.t.Helper()
	require.Empty(s.t, one.Problem)
	changes, err := one.Compare(s.t.Context())
	require.NoError(s.t, err)
	files, err := changes.Files(s.t.Context())
	require.NoError(s.t, err)
	patch, err := changes.Patch(s.t.Context())
	require.NoError(s.t, err)
	require.Equal(s.t, len(files) == 0, patch == "")
	return files
}

// Unsaved work from before is not shown as a change, whatever happens to it in git, and nothing of
// the repository changes.
func TestSnapshot(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	s.write("app/.gitignore", "ignored\n")
	s.write("app/ignored", "x")
	s.write("app/file.txt", "unsaved\n")
	s.write("app/untracked", "a\n")
	s.write("app/[odd] \"name\"\n", "a\n")
	s.write("app/staged", "a\n")
	s.git("app", "add", "staged")
	s.write("app/staged", "b\n")
	s.git("app", "init", "-q", "nested")
	require.NoError(t, os.RemoveAll(s.path("app/sub")))
	require.NoError(t, os.Symlink("file.txt", s.path("app/sub"))) // a file becomes a link above it
	before := s.contents(app)
	one := s.snapshot("app")
	require.Empty(t, s.since(one))
	require.Equal(t, before, s.contents(app))

	s.write("app/file.txt", "unsaved\nmore\n")
	s.write("app/untracked", "b\n")
	s.write("app/new", "\x00")
	changes := []worktree.FileChange{{Path: "file.txt", Added: 1}, {Path: "new", Binary: true},
		{Path: "untracked", Added: 1, Removed: 1}}
	require.Equal(t, changes, s.since(one))
	s.git("app", "add", "--all", "--", ":!nested")
	s.git("app", "commit", "-qm", "work")
	s.write("app/.gitignore", "*\n")
	s.git("app", "rm", "-q", "--cached", "file.txt")
	changes = append([]worktree.FileChange{{Path: ".gitignore", Added: 1, Removed: 1}}, changes...)
	require.Equal(t, changes, s.since(one), "committed, ignored or not")
	s.git("app", "checkout", "-qf", "HEAD~1")
	require.Equal(t, []string{".gitignore", `[odd] "name"` + "\n", "file.txt", "ignored",
		"staged", "sub", "sub/file.txt", "untracked"}, pathsOf(s.since(one)), "files that git has taken away")
	require.Equal(t, one, s.snapshot("app"), "it is taken once")
}

func pathsOf(files []worktree.FileChange) (paths []string) {
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// A folder below the top of a repository has only its own files, and one without commits has all.
func TestSnapshotOfAFolder(t *testing.T) {
	s := newStage(t)
	s.repository("app:with colon")
	s.write("app:with colon/sub/mine", "x\n")
	one := s.snapshot("app:with colon/sub")
	s.write("app:with colon/sub/mine", "y\n")
	s.write("app:with colon/file.txt", "y\n")
	require.Equal(t, []worktree.FileChange{{Path: "mine", Added: 1, Removed: 1}}, s.since(one))

	s.git(s.folder("fresh"), "init", "-q")
	s.write("fresh/mine", "x\n")
	one = s.snapshot("fresh")
	s.write("fresh/new", "x\n")
	require.Equal(t, []worktree.FileChange{{Path: "new", Added: 1}}, s.since(one))

	require.Equal(t, "it is in no git repository", s.snapshot(s.folder("plain")).Problem)
}

// A conflict, files that git overlooks, and a linked worktree.
func TestSnapshotOfOddCheckouts(t *testing.T) {
	s := newStage(t)
	s.repository("app")
	s.git("app", "checkout", "-qb", "other")
	s.write("app/file.txt", "theirs\n")
	s.git("app", "commit", "-qam", "theirs")
	s.git("app", "worktree", "add", "-q", "../linked", "main")
	s.write("linked/file.txt", "ours\n")
	s.git("linked", "commit", "-qam", "ours")
	s.git("linked", "config", "core.splitIndex", "true")
	s.git("linked", "merge", "--no-commit", "-s", "ours", "other")
	s.git("linked", "merge", "--abort")
	_, err := s.tryGit("linked", "merge", "-q", "other")
	require.Error(t, err)
	before := s.contents(s.path("app"))
	one := s.snapshot("linked")
	require.Empty(t, s.since(one))
	require.Equal(t, before, s.contents(s.path("app")))
	s.write("linked/file.txt", "resolved\n")
	require.Equal(t, []string{"file.txt"}, pathsOf(s.since(one)))
}

// What is too large or unreadable is left out, and never shown.
func TestSnapshotLeavesOut(t *testing.T) {
	s := newStage(t)
	s.repository("app")
	large := string(make([]byte, 4<<20+1))
	s.write("app/large", large)
	s.write("app/file.txt", large)
	one := s.snapshot("app")
	require.ElementsMatch(t, []string{"file.txt", "large"}, one.LeftOut)
	s.write("app/large", "changed\n")
	require.Empty(t, s.since(one))
}

// What takes too long is left out, and what is cancelled can be done later.
func TestSnapshotInTime(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	all := worktree.NewSnapshots(s.path("snapshots"))
	late := errors.New("it took too long")
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now(), late)
	defer cancel()
	require.NoError(t, all.Take(ctx, "late", []string{app}))
	require.Equal(t, late.Error(), all.Find("late", app).Problem)
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, all.Take(cancelled, "cancelled", []string{app}), context.Canceled)
	require.Contains(t, all.Find("cancelled", app).Problem, "nothing was noted")

	require.NoError(t, all.Take(t.Context(), "kept", []string{app}))
	old, now := s.path("snapshots", "killed", "making-1"), s.path("snapshots", "busy", "making-2")
	require.NoError(t, errors.Join(os.MkdirAll(old, 0o700), os.MkdirAll(now, 0o700)))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-25*time.Hour)))
	require.NoError(t, all.Prune(func(session string) bool { return session == "late" }))
	require.Contains(t, all.Find("late", app).Problem, "nothing was noted")
	require.Empty(t, all.Find("kept", app).Problem)
	require.NoError(t, all.Remove("kept"))
	left, err := filepath.Glob(s.path("snapshots", "*", "*"))
	require.NoError(t, err)
	require.Equal(t, []string{now}, left)
	require.NoDirExists(t, filepath.Dir(old))
}
