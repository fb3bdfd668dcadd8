package storetest

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

type (
	store  = sessionstore.Store
	update = sessionstore.Update
)

func explore() sessionstore.Agent { return sessionstore.Agent{Kind: "explore"} }

// path returns an absolute path on any platform.
func path(name string) string {
	if runtime.GOOS == "windows" {
		return `C:\src\` + name
	}
	return "/src/" + name
}

func dir(t require.TestingT, name string) workspace.Dir {
	d, err := workspace.ParseDir(path(name))
	require.NoError(t, err)
	return d
}

func dirs(t require.TestingT, names ...string) workspace.Dirs {
	d, err := workspace.ParseDirs(paths(names))
	require.NoError(t, err)
	return d
}

func paths(names []string) []string {
	out := []string{}
	for _, name := range names {
		out = append(out, path(name))
	}
	return out
}

// Keys returns keys whose real paths are their spellings.
func Keys(t require.TestingT, cwd string, additional ...string) sessionstore.Keys {
	return linked(t, cwd, additional, append([]string{cwd}, additional...))
}

// linked returns keys with other real paths.
func linked(t require.TestingT, cwd string, additional, real []string) sessionstore.Keys {
	roots, err := workspace.NewRoots(path(cwd), paths(additional))
	require.NoError(t, err)
	k := sessionstore.Keys{Roots: roots}
	for _, name := range real {
		k.Real = append(k.Real, dir(t, name))
	}
	return k
}

// Create creates a session with the agent and the folder that most have.
func Create(t testing.TB, s store, id string) sessionstore.Lease {
	t.Helper()
	return createAs(t, s, sessionstore.Session{ID: sessionstore.ID(id)})
}

// usual completes a session with the agent and the folder that most have.
func usual(t testing.TB, n sessionstore.Session) sessionstore.Session {
	if n.Agent.Kind == "" {
		n.Agent = explore()
	}
	if n.Keys.Roots.IsZero() {
		n.Keys = Keys(t, "app")
	}
	return n
}

func createAs(t testing.TB, s store, n sessionstore.Session) sessionstore.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), usual(t, n))
	require.NoError(t, err)
	return lease
}

func fork(t *testing.T, s store, source string, n sessionstore.Session) sessionstore.Lease {
	t.Helper()
	lease, err := s.Fork(t.Context(), sessionstore.ID(source), usual(t, n))
	require.NoError(t, err)
	return lease
}

func activate(
	t *testing.T, s store, id sessionstore.ID, a sessionstore.Activation,
) sessionstore.Lease {
	t.Helper()
	if a.Keys.Roots.IsZero() {
		a.Keys = Keys(t, "app")
	}
	lease, err := s.Activate(t.Context(), id, a)
	require.NoError(t, err)
	return lease
}

// record records a complete turn.
func record(t *testing.T, s store, l sessionstore.Lease, prompt string, answer ...update) {
	t.Helper()
	number := Begin(t, s, l, sessionstore.Turn{Prompt: []update{text("user_message_chunk", prompt)}})
	require.NoError(t, s.Append(t.Context(), l, answer))
	require.NoError(t, s.EndTurn(t.Context(), l, number))
}

// Begin begins a turn and returns its number.
func Begin(t *testing.T, s store, l sessionstore.Lease, turn sessionstore.Turn) int64 {
	t.Helper()
	number, err := s.BeginTurn(t.Context(), l, turn)
	require.NoError(t, err)
	return number
}

func text(kind, words string) update {
	return parse(fmt.Sprintf(`{"update":{"sessionUpdate":%q,"content":{"type":"text","text":%q}}}`, kind, words))
}

// parse returns a valid update.
func parse(raw string) update {
	u, err := sessionstore.ParseUpdate([]byte(raw))
	if err != nil {
		panic(err)
	}
	return u
}

// Said returns parts of a message of the agent.
func Said(words ...string) (parts []update) {
	for _, w := range words {
		parts = append(parts, say(w))
	}
	return parts
}

func say(words string) update { return text("agent_message_chunk", words) }

func mode(name string) update {
	return parse(fmt.Sprintf(`{"update":{"sessionUpdate":"current_mode_update","currentModeId":%q}}`, name))
}

func history(t require.TestingT, s store, id string) []string {
	return collected(t, s.History(contextOf(t), sessionstore.ID(id)))
}

func collected(t require.TestingT, history iter.Seq2[update, error]) []string {
	out := []string{}
	for u, err := range history {
		require.NoError(t, err)
		out = append(out, u.String())
	}
	return out
}

func states(t require.TestingT, s store, id string) []string {
	got, err := s.States(contextOf(t), sessionstore.ID(id))
	require.NoError(t, err)
	return texts(got...)
}

func texts(updates ...update) []string {
	out := []string{}
	for _, u := range updates {
		out = append(out, u.String())
	}
	return out
}

func get(t require.TestingT, s store, id string) sessionstore.Session {
	got, err := s.Get(contextOf(t), sessionstore.ID(id))
	require.NoError(t, err)
	return got
}

// requireKeys compares roots by spelling and order.
func requireKeys(t require.TestingT, want, got sessionstore.Keys) {
	require.Equal(t, want.Roots.String(), got.Roots.String())
	require.Equal(t, want.Roots.ReadOnly(), got.Roots.ReadOnly())
	require.Equal(t, want.Real, got.Real)
}

// contextOf returns the context of a test or of a rapid check.
func contextOf(t require.TestingT) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
