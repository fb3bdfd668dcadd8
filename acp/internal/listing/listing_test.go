package listing_test

import (
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// keeper is a backend that keeps one session in cwd.
type keeper struct{ cwd workspace.Dir }

func (keeper) Key(state []byte) string { return string(state) }

func (keeper) State(key string) []byte { return []byte(key) }

func (k keeper) Sessions(
	context.Context, *workspace.Dir,
) iter.Seq2[backend.ForeignSession, error] {
	return func(yield func(backend.ForeignSession, error) bool) {
		yield(backend.ForeignSession{State: []byte("own-1"), Cwd: k.cwd, Title: "Kept\nhere"}, nil)
	}
}

func (keeper) CallStored(context.Context, string, []byte, backend.Raw) (backend.Raw, error) {
	return nil, nil
}

var owner = sessionstore.Agent{Kind: "test"}

// sessions returns the sessions of an agent with the given backend, which stop with the test.
func sessions(t *testing.T, change func(*listing.Options)) *listing.Sessions {
	t.Helper()
	o := listing.Options{
		Store: memstore.New(t), Owner: func() sessionstore.Agent { return owner },
		AgentCommand: func(a sessionstore.Agent) string { return "acp-agent -- " + a.Kind },
		Base:         t.Context(), Log: slog.New(slog.DiscardHandler),
		Tasks: tasks.NewGroup(slog.New(slog.DiscardHandler)),
		Times: listing.Times{Every: time.Hour, Grace: time.Minute, Wait: time.Minute,
			Timeout: time.Minute, Max: 10},
	}
	change(&o)
	t.Cleanup(func() { require.True(t, o.Tasks.Wait(context.Background())) })
	return listing.New(o)
}

func dir(t *testing.T, path string) workspace.Dir {
	t.Helper()
	d, err := workspace.ParseDir(path)
	require.NoError(t, err)
	return d
}

func TestListImportsWhatOnlyTheBackendKnows(t *testing.T) {
	cwd := dir(t, dirtest.New(t))
	s := sessions(t, func(o *listing.Options) { o.Foreign = keeper{cwd} })
	page, err := s.List(t.Context(), workspace.Dir{}, sessionstore.Query{Agent: owner})
	require.NoError(t, err)
	require.Len(t, page.Sessions, 1)
	require.Equal(t, "Kept here", page.Sessions[0].ListedTitle())

	found, err := s.Find(t.Context(), "own-1", cwd)
	require.NoError(t, err, "the backend's own id")
	require.False(t, found.Unstored)
	require.Equal(t, page.Sessions[0].ID, found.ID)
	require.True(t, s.OnlyBackendKnows(t.Context(), found))
}

// A client without the grant for them does not learn of the backend's own sessions.
func TestSessionsOnRecordOnly(t *testing.T) {
	cwd := dir(t, dirtest.New(t))
	s := sessions(t, func(o *listing.Options) { o.Foreign, o.OnlyKnown = keeper{cwd}, true })
	page, err := s.List(t.Context(), workspace.Dir{}, sessionstore.Query{Agent: owner})
	require.NoError(t, err)
	require.Empty(t, page.Sessions)
	_, err = s.Find(t.Context(), "own-1", cwd)
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func TestSessionOfAnotherAgent(t *testing.T) {
	cwd, id := dir(t, dirtest.New(t)), sessionstore.NewID()
	s := sessions(t, func(*listing.Options) {})
	_, err := s.Store.Create(t.Context(), sessionstore.Session{ID: id,
		Agent: sessionstore.Agent{Kind: "other"},
		Keys: sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}),
			Real: []workspace.Dir{workspace.Real(cwd)}}})
	require.NoError(t, err)
	_, err = s.Stored(t.Context(), id)
	wrong := strictjson.ViolationsOf(err)
	require.Len(t, wrong, 1)
	require.Equal(t, strictjson.OtherAgent, wrong[0].Reason)
	require.Equal(t, "acp-agent -- other", wrong[0].Expected)
}

func TestHintForARenamedFolder(t *testing.T) {
	gone := filepath.Join(dirtest.New(t), "gone", "app")
	wrong := []strictjson.Violation{
		strictjson.NewViolation("cwd", gone, strictjson.Missing),
		strictjson.NewViolation("cwd", gone, strictjson.Unreadable),
	}
	listing.HintMoves(wrong, func(strictjson.Violation, string) bool { return true },
		func(string) string { return "" })
	require.Contains(t, wrong[0].String(), "acp-agent sessions move "+filepath.Dir(gone))
	require.NotContains(t, wrong[1].String(), "sessions move")
}
