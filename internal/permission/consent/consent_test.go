package consent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// Clause A25.
func TestDamagedRecords(t *testing.T) {
	state := t.TempDir()
	consents := consent.NewStore(state)
	x := consent.Consent{ID: consent.NewID([]string{"server"}), Server: "db", Root: dir(t)}
	require.NoError(t, consents.Allow(x))
	path := filepath.Join(state, string(x.ID))
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "no root": `{"server":"db"}`, "relative": `{"server":"db","root":"a"}`, "types": `{"server":7}`,
		"time": `{"server":"db","root":"/a","allowedAt":"yesterday"}`, "huge": `{"server":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		allowed, err := consents.Has(x.ID)
		require.NoError(t, err)
		require.True(t, allowed, name)
		all, err := consents.List()
		require.NoError(t, err)
		require.Len(t, all, 1, name)
		require.Equal(t, x.ID, all[0].ID)
		require.Empty(t, all[0].Server, name)
		require.False(t, all[0].Allowed.IsZero())
	}
	// As it was written at first, without the time.
	require.NoError(t, os.WriteFile(path, []byte(`{"root":`+strconv.Quote(filepath.ToSlash(x.Root.String()))+`,"server":"db"}`+"\n"), 0o600))
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, when, when))
	all, err := consents.List()
	require.NoError(t, err)
	require.Equal(t, []consent.Consent{{ID: x.ID, Server: "db", Root: x.Root, Allowed: when}}, all)

	for _, name := range []string{".new-1", "notes", strings.Repeat("A", 64)} {
		require.NoError(t, os.WriteFile(filepath.Join(state, name), []byte(`{}`), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(state, strings.Repeat("a", 64)), 0o700))
	all, err = consents.List()
	require.NoError(t, err)
	require.Len(t, all, 1, "what is no record is none")
}

// Clause A25.
func TestForget(t *testing.T) {
	state := t.TempDir()
	consents := consent.NewStore(state)
	one := consent.ID(strings.Repeat("a", 64))
	require.NoError(t, os.WriteFile(filepath.Join(state, string(one)), nil, 0o600))
	outside := filepath.Join(state, "..", "outside")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	for _, id := range []consent.ID{one, one, "../outside"} {
		require.NoError(t, consents.Forget(id))
	}
	require.FileExists(t, outside)
	all, err := consents.List()
	require.NoError(t, err)
	require.Empty(t, all)
}

// Clause A25.
func TestUnreadableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := consent.NewStore(file).List()
	require.ErrorContains(t, err, "cannot list")
}
