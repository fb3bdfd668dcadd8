package sqlite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// firstWord names an agent by the first word of its name.
func firstWord(a sessionstore.Agent) sessionstore.Agent {
	a.Profile, _, _ = strings.Cut(a.Profile, " ")
	return a
}

func agentOf(command string) sessionstore.Agent {
	return sessionstore.Agent{Kind: "proxy", Profile: command}
}

// renamer opens the store in a directory, where agents have other names by now.
func renamer(ctx context.Context, s *sqlite.Store, _ string) error {
	renaming := sqlite.New(sqlite.Options{Dir: s.Dir(), Renamed: firstWord})
	_, err := renaming.List(ctx, sessionstore.Query{})
	if err != nil {
		return err
	}
	return renaming.Close()
}

// oldNames are sessions in a store whose agents are named by command lines.
type oldNames struct {
	*testing.T
	store *sqlite.Store
}

func (o oldNames) imported(agent, name, key string, updated time.Time) {
	o.Helper()
	_, err := o.store.Import(o.Context(), agentOf(agent), []sessionstore.Imported{{
		ID: sessionstore.ID(name), StateKey: key, State: []byte(key), Keys: rooted(o, "app"),
		Title: "listed", Updated: updated}})
	require.NoError(o, err)
}

// used creates a session with a turn and returns its lease.
func (o oldNames) used(agent, name, key string) sessionstore.Lease {
	o.Helper()
	lease, err := o.store.Create(o.Context(), sessionstore.NewSession{ID: sessionstore.ID(name),
		Agent: agentOf(agent), Keys: rooted(o, "app", "lib"), State: []byte(key), StateKey: key})
	require.NoError(o, err)
	number := begin(o, o.store, lease, say("in "+name))
	require.NoError(o, o.store.EndTurn(o.Context(), lease, number))
	return lease
}

func (o oldNames) deleted(agent, key string) {
	o.Helper()
	lease := o.used(agent, "deleted "+key, key)
	require.NoError(o, o.store.Delete(o.Context(), lease.ID))
}

// Clause A31.
func TestRenamedAgents(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	old := oldNames{t, open(t, sqlite.Options{Dir: dir, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})}
	lease := old.used("one acp", "kept", "k1")
	old.imported("one --flag acp", "double", "k1", now.Add(time.Hour))
	old.used("one acp", "earlier", "k2")
	old.used("one --flag acp", "later", "k2")
	old.deleted("one acp", "k3")
	old.imported("one --flag acp", "again", "k3", now)
	old.deleted("one acp", "k4")
	old.used("one --flag acp", "new life", "k4")
	old.deleted("one --flag acp", "k5")
	old.imported("one --flag acp", "native", "k6", now)
	old.used("two acp", "other", "k1")

	s := open(t, sqlite.Options{Dir: dir, Renamed: firstWord})
	owned := func(agent string) (names []string) {
		page, err := s.List(t.Context(), sessionstore.Query{Agent: agentOf(agent)})
		require.NoError(t, err)
		for _, session := range page.Sessions {
			names = append(names, string(session.ID))
		}
		return names
	}
	require.ElementsMatch(t, []string{"kept", "earlier", "later", "new life", "native"}, owned("one"))
	require.Equal(t, []string{"other"}, owned("two"))
	require.Empty(t, owned("one acp"))
	for name, key := range map[string]string{"kept": "k1", "earlier": "", "later": "k2",
		"new life": "k4", "native": "k6", "other": "k1"} {
		session, err := s.Get(t.Context(), sessionstore.ID(name))
		require.NoError(t, err)
		require.Equal(t, key, session.StateKey, name)
	}
	require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("still open")}))

	added, err := s.Import(t.Context(), agentOf("one"), []sessionstore.Imported{
		{ID: "3", StateKey: "k3", Keys: rooted(t, "app")},
		{ID: "4", StateKey: "k4", Keys: rooted(t, "app"), Meta: []byte(`{"seen":1}`)},
		{ID: "5", StateKey: "k5", Keys: rooted(t, "app")},
	})
	require.NoError(t, err)
	require.Zero(t, added, "they are known, or were deleted")
	session, err := s.Get(t.Context(), "new life")
	require.NoError(t, err)
	require.JSONEq(t, `{"seen":1}`, string(session.Meta))
	require.Equal(t, "ok", integrity(t, dir))
}

// Clause A31.
func TestRenameAgentsInTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	old := oldNames{t, open(t, sqlite.Options{Dir: dir})}
	for _, command := range []string{"one acp", "one --flag acp", "two"} {
		for _, key := range []string{"k1", "k2", "k3"} {
			old.used(command, command+key, key)
		}
	}
	first, second := process(t, "renamer", dir, ""), process(t, "renamer", dir, "")
	require.NoError(t, first.Start())
	require.NoError(t, second.Start())
	require.NoError(t, first.Wait())
	require.NoError(t, second.Wait())
	page, err := old.store.List(t.Context(), sessionstore.Query{Agent: agentOf("one")})
	require.NoError(t, err)
	require.Len(t, page.Sessions, 6)
	require.Len(t, ids(t, old.store), 9)
	require.Equal(t, "ok", integrity(t, dir))
}
