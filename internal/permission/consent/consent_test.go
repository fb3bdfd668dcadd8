package consent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/workspace"
)

func dir(t *testing.T) workspace.Dir {
	t.Helper()
	d, err := workspace.ParseDir(t.TempDir())
	require.NoError(t, err)
	return d
}

// Clause R3.
func TestRules(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store, root := consent.NewStore(state), dir(t)
	allowed := consent.ForRule(root, "run go test ...", "")
	allowed.Agent, allowed.By, allowed.Title = "opencode", "s", "Test"
	require.NoError(t, store.Allow(allowed))
	for _, c := range []consent.Consent{consent.ForRule(dir(t), allowed.Rule, ""),
		consent.ForRule(root, "run go test", ""), consent.ForRule(root, allowed.Rule, "x")} {
		has, err := store.Has(c.ID)
		require.NoError(t, err)
		require.False(t, has, c.Rule)
	}
	require.NoError(t, store.Use(allowed.ID))
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []string{allowed.Rule, "opencode", "s", "Test"},
		[]string{all[0].Rule, all[0].Agent, all[0].By, all[0].Title})
	require.False(t, all[0].Used.IsZero())

	// The name of a record covers what it allows.
	path := filepath.Join(state, string(allowed.ID))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(content, []byte("go test"), []byte("go vet"), 1), 0o600))
	all, err = store.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Rule)
	folders, err := store.Folders("", root)
	require.NoError(t, err)
	require.Empty(t, folders)
}

// Clause A33.
func TestFolders(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store := consent.NewStore(state)
	cwd, other, a, b := dir(t), dir(t), dir(t), dir(t)
	for _, c := range []consent.Consent{consent.ForFolder(cwd, a, ""), consent.ForFolder(cwd, b, "s1"), consent.ForFolder(other, b, "")} {
		require.NoError(t, store.Allow(c))
	}
	folders := func(cwd workspace.Dir, session string) []workspace.Dir {
		t.Helper()
		found, err := store.Folders(session, cwd)
		require.NoError(t, err)
		dirs := []workspace.Dir{}
		for _, c := range found {
			dirs = append(dirs, c.Folder)
		}
		return dirs
	}
	require.Equal(t, []workspace.Dir{a}, folders(cwd, ""))
	require.Equal(t, []workspace.Dir{a}, folders(cwd, "s2"))
	require.ElementsMatch(t, []workspace.Dir{a, b}, folders(cwd, "s1"))
	require.Equal(t, []workspace.Dir{b}, folders(other, "s1"))

	require.NoError(t, store.ForgetSession(""))
	require.NoError(t, store.ForgetSession("s1"))
	require.Equal(t, []workspace.Dir{a}, folders(cwd, "s1"))

	// A record that was changed allows nothing.
	path := filepath.Join(state, string(consent.ForFolder(cwd, a, "").ID))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(state, string(consent.ForFolder(cwd, b, "").ID)), content, 0o600))
	require.Equal(t, []workspace.Dir{a}, folders(cwd, ""))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	require.Empty(t, folders(cwd, ""))
	all, err := store.List()
	require.NoError(t, err)
	require.Len(t, all, 3, "it can be forgotten")
}
