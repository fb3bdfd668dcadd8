package serve

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestTokenIsFoundUntilItIsRevoked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	s := NewAccounts(dir)
	within, err := workspace.ParseDirs([]string{t.TempDir()})
	require.NoError(t, err)
	list, err := s.List()
	require.NoError(t, err)
	require.Empty(t, list)

	ana := Account{Name: "ana", Within: within, Limits: Limits{Limits: acp.Limits{Turns: 3}, StoredBytes: 7},
		Budget: acp.Budget{Amount: 5, Currency: "USD", Per: acp.PerDay}}
	_, err = s.AddToken("ana", Token{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, s.Change(ana), fs.ErrNotExist)
	require.NoError(t, s.Create(ana))
	require.ErrorIs(t, s.Create(ana), fs.ErrExist)
	secrets := make([]string, 3)
	for i := range secrets {
		secrets[i], err = s.AddToken("ana", Token{Created: time.Unix(int64(i), 0).UTC(), Label: fmt.Sprint(i)})
		require.NoError(t, err)
		found, err := s.findToken(secrets[i], Bearer)
		require.NoError(t, err)
		require.True(t, found.same(ana))
		require.Equal(t, fmt.Sprint(i), found.Label)
	}
	tokens, err := s.Tokens("ana")
	require.NoError(t, err)
	require.Len(t, tokens, 3)
	for i, token := range tokens {
		require.Equal(t, fmt.Sprint(i), token.Label)
		content := dirtest.Read(t, filepath.Join(dir, "ana", token.ID+".json"))
		_, random, _ := strings.Cut(secrets[i], ".")
		require.NotContains(t, content, random)
	}

	for _, id := range []string{"", "../ana", "00000000", strings.ToUpper(tokens[1].ID) + "x"} {
		require.ErrorIs(t, s.RevokeToken("ana", id), fs.ErrNotExist, id)
	}
	require.NoError(t, s.RevokeToken("ana", tokens[1].ID))
	_, err = s.findToken(secrets[1], Bearer)
	require.ErrorIs(t, err, errInvalid)
	_, err = s.findToken(secrets[0], Bearer)
	require.NoError(t, err)

	require.NoError(t, s.Revoke("ana"))
	require.ErrorIs(t, s.Revoke("ana"), fs.ErrNotExist)
	require.NoError(t, s.Create(ana))
	for _, secret := range secrets {
		_, err = s.findToken(secret, Bearer)
		require.ErrorIs(t, err, errInvalid)
	}
}

func TestInvalidTokensAreNotFound(t *testing.T) {
	s := NewAccounts(t.TempDir())
	require.NoError(t, s.Create(Account{Name: "ana"}))
	secret, err := s.AddToken("ana", Token{})
	require.NoError(t, err)
	expired, err := s.AddToken("ana", Token{Expires: time.Now().Add(-time.Second)})
	require.NoError(t, err)
	for _, wrong := range []string{"", ".", "ana", "ana.", secret + "x", "x" + secret, "../tokens/" + secret,
		strings.ToUpper(secret), "bob." + strings.TrimPrefix(secret, "ana."), expired} {
		_, err := s.findToken(wrong, Bearer)
		require.ErrorIs(t, err, errInvalid, wrong)
	}
	for _, name := range []string{"", ".", "..", "-a", "_a", "a.", "a/b", "A", "a b", "é", "a.json", strings.Repeat("a", 65)} {
		require.ErrorContains(t, s.Create(Account{Name: name}), "small letters", name)
	}
}

// What is damaged hides nothing else.
func TestDamagedFilesOfTokens(t *testing.T) {
	s := NewAccounts(t.TempDir())
	for _, name := range []string{"ana", "bob"} {
		require.NoError(t, s.Create(Account{Name: name}))
	}
	_, err := s.AddToken("bob", Token{})
	require.NoError(t, err)
	for _, file := range []string{"copy of ana.json", "eve.json", "bob/x.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), nil, 0o600))
	}
	list, err := s.List()
	require.ErrorContains(t, err, "copy of ana.json is not the file of a user")
	require.ErrorContains(t, err, "eve.json is damaged")
	require.Len(t, list, 2)
	tokens, err := s.Tokens("bob")
	require.ErrorContains(t, err, "x.json is damaged")
	require.Len(t, tokens, 1)
}
