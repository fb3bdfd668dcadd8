package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/worktree"
)

// differing returns the paths of the files that differ in a worktree.
func (s *stage) differing(r *worktree.Repository) (paths []string) {
	s.t.Helper()
	changes, err := r.Compare(s.t.Context())
	require.NoError(s.t, err)
	files, err := changes.Files(s.t.Context())
	require.NoError(s.t, err)
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// What differs from the commit where the work began is shown, committed or not, and nothing of the
// repository changes.
func TestChanges(t *testing.T) {
	s := newStage(t)
	app, lib := s.repository("app"), s.repository("lib")
	s.write("app/mine.txt", "unsaved work in the original\n")
	task := s.make("task", app, lib)
	one, two := task.Repositories[0], task.Repositories[1]
	require.Empty(t, s.differing(one))
	require.Equal(t, "nothing changed", one.Status(t.Context()).String())

	s.write(filepath.Join(one.Path, "file.txt"), "one\nmore\n")
	s.git(one.Path, "commit", "-qam", "second")
	s.write(filepath.Join(one.Path, "sub/file.txt"), "2\n")
	s.write(filepath.Join(one.Path, "new file.bin"), "\x00")
	s.write(filepath.Join(one.Path, "[x]"), "a\nb\n")
	s.write(filepath.Join(one.Path, ".gitignore"), "ignored\n")
	s.write(filepath.Join(one.Path, "ignored"), "x")
	s.git(one.Path, "init", "-q", "nested")
	require.NoError(t, os.Remove(filepath.Join(two.Path, "file.txt")))
	before := s.contents(app)
	changes, err := one.Compare(t.Context())
	require.NoError(t, err)
	files, err := changes.Files(t.Context())
	require.NoError(t, err)
	require.Equal(t, []worktree.FileChange{{Path: ".gitignore", Added: 1}, {Path: "[x]", Added: 2},
		{Path: "file.txt", Added: 1}, {Path: "new file.bin", Binary: true},
		{Path: "sub/file.txt", Added: 1, Removed: 1}}, files)
	patch, err := changes.Patch(t.Context())
	require.NoError(t, err)
	require.Contains(t, patch, "+more")
	require.Contains(t, patch, "new file mode")
	require.Equal(t, []string{"file.txt"}, s.differing(two))
	require.Equal(t, before, s.contents(app))
	require.Equal(t, worktree.Status{Branch: "task", Changed: 5, Ahead: 1}, one.Status(t.Context()))
}

// The work of others, which a rebase brings, is not that of the task.
func TestChangesAfterRebase(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	r := s.make("task", app).Repositories[0]
	s.write(filepath.Join(r.Path, "task.txt"), "x\n")
	s.git(r.Path, "add", ".")
	s.git(r.Path, "commit", "-qm", "work")
	s.write("app/other.txt", "y\n")
	s.git("app", "add", ".")
	s.git("app", "commit", "-qm", "of others")
	require.Equal(t, "1 ahead, 1 behind", r.Status(t.Context()).String())
	require.Equal(t, []string{"task.txt"}, s.differing(r))
	s.git(r.Path, "rebase", "-q", s.git("app", "rev-parse", "HEAD"))
	require.Equal(t, []string{"task.txt"}, s.differing(r))
	s.git("app", "merge", "-q", "task")
	require.Equal(t, "merged", r.Status(t.Context()).String())
	s.git(r.Path, "checkout", "-q", "--orphan", "nothing")
	require.Equal(t, "branch nothing without a commit", r.Status(t.Context()).String())
	s.git(r.Path, "checkout", "-qf", "--detach", "main")
	require.Equal(t, "merged, on no branch", r.Status(t.Context()).String())
	require.NoError(t, os.RemoveAll(r.Path))
	require.Equal(t, "missing", r.Status(t.Context()).String())
}

// A repository's own programs do not run when it is only looked at.
func TestChangesRunNothing(t *testing.T) {
	s := newStage(t)
	app := s.repository("app")
	r := s.make("task", app).Repositories[0]
	s.write(filepath.Join(r.Path, ".gitattributes"), "* diff=evil filter=evil\n")
	s.write(filepath.Join(r.Path, "file.txt"), "more\n")
	for _, key := range []string{"diff.external", "diff.evil.command", "diff.evil.textconv",
		"filter.evil.clean", "core.fsmonitor"} {
		s.git("app", "config", key, "touch "+s.path("ran")+";")
	}
	changes, err := r.Compare(t.Context())
	require.NoError(t, err)
	_, err = changes.Patch(t.Context())
	require.NoError(t, err)
	s.differing(r)
	r.Status(t.Context())
	require.NoFileExists(t, s.path("ran"))
}

// A file whose time alone has changed is none, even if a filter of the user makes what git has of
// it. Removing says so too.
func TestFilteredFilesThatWereTouched(t *testing.T) {
	s := newStage(t)
	for key, value := range map[string]string{"clean": "tr A-Z a-z", "smudge": "tr a-z A-Z", "required": "true"} {
		s.git(".", "config", "--global", "filter.case."+key, value)
	}
	s.write("app/.gitattributes", "*.txt filter=case\n")
	s.initialize("app")
	r := s.make("task", s.path("app")).Repositories[0]
	s.git(r.Path, "read-tree", "--empty") // as the plan says
	s.git(r.Path, "reset", "-q", "--hard")
	require.Equal(t, "ONE\n", s.contents(r.Path)["file.txt"])
	one := s.snapshot(r.Path)
	require.NoError(t, os.Chtimes(filepath.Join(r.Path, "file.txt"), timeLongAgo, timeLongAgo))
	require.Empty(t, s.differing(r))
	require.Empty(t, s.since(one))
	require.Equal(t, "nothing changed", r.Status(t.Context()).String())
	s.write(r.Path+"/file.txt", "TWO\n")
	require.Equal(t, []string{"file.txt"}, s.differing(r))
	require.Equal(t, []string{"file.txt"}, pathsOf(s.since(one)))
	s.write(r.Path+"/file.txt", "ONE\n")
	_, err := s.registry.Remove(t.Context(), "task")
	require.NoError(t, err)
}
