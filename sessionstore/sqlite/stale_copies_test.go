package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// With so many sessions SQLite moves rows from page to page and leaves copies behind, which a deletion has to find.
func TestS10_WhatMovedAboutTheFileIsGoneToo(t *testing.T) {
	const sessions, kept = 1500, 7
	s := open(t, sqlite.Options{})
	order := rand.New(rand.NewPCG(7, 8)).Perm(sessions)
	for _, i := range order {
		lease, err := s.Create(t.Context(), sessionstore.NewSession{
			ID: sessionstore.ID(secret(i)), Agent: sessionstore.Agent{Kind: "explore"}, Keys: rooted(t, "app", secret(i)),
		})
		require.NoError(t, err)
		if i%kept == 0 {
			require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("used")}))
		}
	}
	n, err := s.Prune(t.Context(), sessionstore.PruneQuery{UnusedBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, sessions-(sessions+kept-1)/kept, n)
	left := func() (found []string) {
		files, err := os.ReadFile(filepath.Join(s.Dir(), "sessions.db"))
		require.NoError(t, err)
		for i := range sessions {
			if i%kept != 0 && bytes.Contains(files, []byte(secret(i))) {
				found = append(found, secret(i))
			}
		}
		return found
	}
	require.NoError(t, s.Close())
	require.Empty(t, left(), fmt.Sprint(len(left()), " of them"))
	require.Equal(t, "ok", integrity(t, s.Dir()))
}
