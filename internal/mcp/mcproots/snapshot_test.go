package mcproots

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

func mkdir(t testing.TB, parts ...string) string {
	t.Helper()
	d := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(d, 0o755))
	return d
}

func take(t testing.TB, cwd string, additional ...string) Snapshot {
	t.Helper()
	s, err := Take(roottest.Open(t, cwd, additional...))
	require.NoError(t, err)
	return s
}

func names(s Snapshot) (names []string) {
	for _, r := range s.All() {
		names = append(names, r.Name)
	}
	return names
}

func uri(t testing.TB, path string) string {
	return dir(t, path).URI()
}

// Clause M1.
func TestDuplicateDirectories(t *testing.T) {
	top := dirtest.New(t)
	a, b := mkdir(t, top, "a"), mkdir(t, top, "b")
	link := filepath.Join(top, "link")
	if err := os.Symlink(a, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	require.Equal(t, []string{uri(t, a), uri(t, b)}, take(t, link, b, a).URIs(),
		"the real path, where the first was")
	nested := mkdir(t, a, "nested")
	require.Equal(t, []string{uri(t, nested), uri(t, a)}, take(t, nested, a).URIs(),
		"nested roots stay")
}

// Clause M1.
func TestNamesAreDistinct(t *testing.T) {
	top := dirtest.New(t)
	s := take(t, mkdir(t, top, "x", "app"), mkdir(t, top, "y", "app"), mkdir(t, top, "lib"),
		mkdir(t, top, "y", "x", "app"))
	require.Equal(t, []string{filepath.Base(top) + "/x/app", "y/app", "lib", "y/x/app"}, names(s))
	require.Equal(t, []string{"nested"}, names(take(t, mkdir(t, top, "n", "nested"))))
	if volume := filepath.VolumeName(top); volume == "" {
		require.Equal(t, []string{"/"}, names(take(t, "/")))
	}
}

// Clause M6.
func TestExisting(t *testing.T) {
	top := dirtest.New(t)
	stays, goes, replaced, linked := mkdir(t, top, "stays"), mkdir(t, top, "goes"), mkdir(t, top,
		"replaced"), mkdir(t, top, "linked")
	w := roottest.Open(t, stays, goes, replaced, linked)
	s, err := Take(w)
	require.NoError(t, err)
	require.Equal(t, 4, s.Existing().Len())

	require.NoError(t, os.Rename(goes, filepath.Join(top, "elsewhere")))
	require.NoError(t, os.Rename(replaced, filepath.Join(top, "before")))
	mkdir(t, top, "replaced")
	require.NoError(t, os.Remove(linked))
	if err := os.Symlink(stays, linked); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	require.Equal(t, []string{uri(t, stays)}, s.Existing().URIs())
	missing := s.Missing(s.Existing())
	require.Len(t, missing, 3)
	require.Equal(t, goes, missing[0].Real.String())

	again, err := Take(w)
	require.NoError(t, err)
	require.Equal(t, []string{uri(t, stays)}, again.URIs(), "a new snapshot leaves it out too")

	require.NoError(t, os.Rename(filepath.Join(top, "elsewhere"), goes))
	require.Equal(t, []string{uri(t, stays), uri(t, goes)}, s.Existing().URIs(), "it came back")
}

func TestTakeOfAClosedWorkspace(t *testing.T) {
	w := roottest.Open(t, dirtest.New(t))
	require.NoError(t, w.Close())
	_, err := Take(w)
	require.ErrorIs(t, err, workspace.ErrClosed)
}

func TestSnapshotEqual(t *testing.T) {
	top := dirtest.New(t)
	a, b := mkdir(t, top, "a"), mkdir(t, top, "b")
	require.True(t, take(t, a, b).Equal(take(t, a, b)))
	require.False(t, take(t, a, b).Equal(take(t, b, a)), "the order counts")
	require.False(t, take(t, a).Equal(take(t, a, b)))
	require.Empty(t, take(t, a).Missing(take(t, b, a)))
	require.True(t, Snapshot{}.Equal(Snapshot{}))
	require.NotNil(t, Snapshot{}.URIs())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
