package remote

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestTokenIsFoundUntilItIsRevoked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	s := NewTokens(dir)
	within, err := workspace.ParseDirs([]string{t.TempDir()})
	require.NoError(t, err)
	list, err := s.List()
	require.NoError(t, err)
	require.Empty(t, list)

	added := Token{Name: "ana", Within: within, Created: time.Unix(1, 0).UTC()}
	secret, err := s.Add(added)
	require.NoError(t, err)
	_, err = s.Add(added)
	require.ErrorIs(t, err, ErrTokenExists)
	found, err := s.find(secret)
	require.NoError(t, err)
	require.Equal(t, "ana", found.Name)
	require.Equal(t, within, found.Within)

	content, err := os.ReadFile(filepath.Join(dir, "ana.json"))
	require.NoError(t, err)
	_, random, _ := strings.Cut(secret, ".")
	require.NotContains(t, string(content), random)

	require.NoError(t, s.Revoke("ana"))
	require.ErrorIs(t, s.Revoke("ana"), fs.ErrNotExist)
	_, err = s.find(secret)
	require.ErrorIs(t, err, errInvalid)

	// A new token for the same name is another one.
	again, err := s.Add(added)
	require.NoError(t, err)
	_, err = s.find(secret)
	require.ErrorIs(t, err, errInvalid)
	other, err := s.find(again)
	require.NoError(t, err)
	require.False(t, other.same(found))
}

func TestInvalidTokensAreNotFound(t *testing.T) {
	s := NewTokens(t.TempDir())
	secret, err := s.Add(Token{Name: "ana"})
	require.NoError(t, err)
	for _, wrong := range []string{"", ".", "ana", "ana.", secret + "x", "x" + secret, "../tokens/" + secret,
		strings.ToUpper(secret), "bob." + strings.TrimPrefix(secret, "ana.")} {
		_, err := s.find(wrong)
		require.ErrorIs(t, err, errInvalid, wrong)
	}
	for _, name := range []string{"", ".", "..", "-a", "_a", "a.", "a/b", "A", "a b", "é", strings.Repeat("a", 65)} {
		_, err := s.Add(Token{Name: name})
		require.ErrorContains(t, err, "small letters", name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "copy of ana.json"), nil, 0o600))
	_, err = s.List()
	require.ErrorContains(t, err, "copy of ana.json is not the file of a token")
}
