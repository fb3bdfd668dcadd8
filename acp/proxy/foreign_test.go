package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// newForeign returns a proxy whose agent has n sessions in dir that it created by itself.
func newForeign(t *testing.T, a abilities, o proxy.Options, n int, dir string) backend.Foreign {
	h, v := connected(t, a, o)
	cwd, err := workspace.NewRoots(dir, nil)
	require.NoError(t, err)
	for range n {
		v.open(cwd)
	}
	v.disconnect()
	r := proxy.New(h.command, o)
	_, err = r.Initialize(t.Context(), backend.Raw(`{}`), newFakeClient(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r.(backend.Foreign)
}

// sessionsOf yields all sessions of f.
func sessionsOf(t *testing.T, f backend.Foreign) iter.Seq[backend.ForeignSession] {
	return func(yield func(backend.ForeignSession) bool) {
		for s, err := range f.Sessions(t.Context(), nil) {
			if errors.Is(err, backend.ErrPartial) {
				return
			}
			require.NoError(t, err)
			if !yield(s) {
				return
			}
		}
	}
}

func TestSessions(t *testing.T) {
	dir := t.TempDir()
	for _, page := range []int{0, 1, 2, 3, 5} {
		f := newForeign(t, abilities{List: true, Load: true, Delete: true, Page: page},
			proxy.Options{}, 4, dir)
		keys := map[string]bool{}
		for s := range sessionsOf(t, f) {
			key := f.Key(s.State)
			require.NotEmpty(t, key)
			keys[key] = true
			require.Equal(t, dir, s.Cwd.String())
			require.Equal(t, "title of "+key, s.Title)
			require.Equal(t, 2026, s.Updated.Year())
		}
		require.Equal(t, map[string]bool{"c1": true, "c2": true, "c3": true, "c4": true}, keys)
		elsewhere, err := workspace.ParseDir(t.TempDir())
		require.NoError(t, err)
		for s := range f.Sessions(t.Context(), &elsewhere) {
			require.Empty(t, s, "there are none")
		}
		for s := range sessionsOf(t, f) {
			for range 2 { // it has been deleted the second time
				_, err := f.CallStored(t.Context(), "session/delete", s.State, backend.Raw(`{}`))
				require.NoError(t, err)
			}
			break
		}
		left := 0
		for range sessionsOf(t, f) {
			left++
		}
		require.Equal(t, 3, left)
	}
}

// A session that the agent neither lists nor replays does not exist, although it loads any id. If
// it lists none, its word counts.
//
// Clause A28.
func TestAgentThatLoadsAnyID(t *testing.T) {
	for _, lists := range []bool{true, false} {
		t.Run(fmt.Sprintf("A28/lists=%v", lists), func(t *testing.T) {
			a := abilities{List: lists, Load: true, Close: true, Gullible: true}
			h, v := connected(t, a, proxy.Options{})
			_, err := v.LoadSession(t.Context(), "nowhere", client.Setup{Roots: roots(t, 1)})
			if !lists {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "no session nowhere")
			v.disconnect()
			require.Contains(t, methods(h.received()), "session/close")
			page, err := h.store.List(t.Context(), sessionstore.Query{})
			require.NoError(t, err)
			require.Empty(t, page.Sessions)
		})
	}
}

// What an agent leaves out counts as deleted only if its list has all sessions of a folder.
//
// Clause A31.
func TestPartialLists(t *testing.T) {
	const one, two = `{"sessionId":"a","cwd":"/a"}`, `{"sessionId":"b","cwd":"/a"}`
	for _, c := range []struct {
		name, sessions, then, version string
		limit                         int
		all, partial                  bool
	}{
		{name: "complete", sessions: one, limit: 2},
		{name: "empty", limit: 2},
		{name: "as many as there may be", sessions: one + "," + two, limit: 2, partial: true},
		{name: "unknown agent", sessions: one, partial: true},
		{name: "another major version", sessions: one, limit: 2, version: `"2.0.0"`, partial: true},
		{name: "a later version", sessions: one, limit: 2, version: `"v1.30.2-beta"`},
		{name: "a version that is no text", sessions: one, limit: 2, version: `2`},
		{name: "all folders", sessions: one, limit: 2, all: true, partial: true},
		{name: "two pages", sessions: one, then: two, limit: 9, partial: true},
		{name: "without an id", sessions: `{"cwd":"/a"}`, limit: 2, partial: true},
		{name: "malformed", sessions: one + `,5`, limit: 9, partial: true},
		{name: "without a folder", sessions: `{"sessionId":"a"}`, limit: 2},
	} {
		t.Run("A31/"+c.name, func(t *testing.T) {
			more := ""
			if c.then != "" {
				more = `,"nextCursor":"x"`
			}
			b := initialized(t,
				"await initialize\n"+
					`answer initialize {"protocolVersion":1,"agentInfo":{"name":"x","version":`+
					cmp.Or(c.version, `""`)+`},"agentCapabilities":{"loadSession":true,`+
					`"sessionCapabilities":{"list":{}}}}`+
					"\nawait session/list\n"+
					`answer session/list {"sessions":[`+c.sessions+`]`+more+`}`+
					"\nawait session/list\n"+
					`answer session/list {"sessions":[`+c.then+`]}`+"\n",
				proxy.Options{Profile: profiles.Profile{Replay: profiles.Replay{ListLimit: c.limit}, Checked: "1.18.33"}})
			dir, err := workspace.ParseDir("/a")
			require.NoError(t, err)
			cwd := &dir
			if c.all {
				cwd = nil
			}
			var last error
			for _, err := range b.backend.(backend.Foreign).Sessions(t.Context(), cwd) {
				last = err
			}
			if c.partial {
				require.ErrorIs(t, last, backend.ErrPartial)
			} else {
				require.NoError(t, last)
			}
		})
	}
}

// A session that only the agent had, and which it has deleted, is not replaced by an empty one.
//
// Clauses A28, A31.
func TestListedSessionThatTheAgentLost(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		t.Run(method, func(t *testing.T) {
			files, here := t.TempDir(), roots(t, 0)
			file := filepath.Join(files, "theirs.json")
			raw := backend.Encode(simulatedSession{Cwd: here.Cwd().String()})
			require.NoError(t, os.WriteFile(file, raw, 0o600))
			v := newSystem(t, abilities{List: true, Load: true, Resume: true, Fork: true,
				Dir: files}, proxy.Options{}).connect()
			for s, err := range v.Sessions(t.Context(), client.Query{Cwd: here.Cwd()}) {
				require.NoError(t, err)
				require.NoError(t, os.Remove(file))
				_, err = v.Call(t.Context(), method, backend.Encode(map[string]any{
					"sessionId": s.ID, "cwd": here.Cwd(), "mcpServers": []string{}}))()
				require.ErrorContains(t, err, "unknown session", "as the agent says it")
				return
			}
			require.Fail(t, "it is not listed")
		})
	}
}

func TestSessionsLimit(t *testing.T) {
	f := newForeign(t, abilities{List: true, Resume: true, Page: 2},
		proxy.Options{}.With(proxy.Limits{MaxPages: 2}), 5, t.TempDir())
	n := 0
	for _, err := range f.Sessions(t.Context(), nil) {
		if n++; n > 4 {
			require.ErrorContains(t, err, "more than 2 pages")
		}
	}
	require.Equal(t, 5, n)
}

func TestSessionsThatCannotBeOpened(t *testing.T) {
	for _, err := range newForeign(t, abilities{List: true}, proxy.Options{}, 2,
		t.TempDir()).Sessions(t.Context(), nil) {
		require.ErrorIs(t, err, errors.ErrUnsupported, "the agent can neither load nor resume")
	}
}

func TestSessionsNotSupported(t *testing.T) {
	b := initialized(t, plain)
	f := b.backend.(backend.Foreign)
	for _, err := range f.Sessions(t.Context(), nil) {
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
	require.Empty(t, f.Key(nil))
	require.Empty(t, f.Key([]byte(`{"v":1,"id":7}`)))
	result, err := f.CallStored(t.Context(), "session/delete", nil, nil)
	require.NoError(t, err)
	require.Nil(t, result)
	for _, err := range proxy.New(b.command,
		proxy.Options{}).(backend.Foreign).Sessions(t.Context(), nil) {
		require.ErrorIs(t, err, errors.ErrUnsupported, "it is not initialized")
	}
}

// An editor that was used with the agent alone remembers its ids.
//
// Clause A31.
func TestLoadByIDOfAgent(t *testing.T) {
	for name, a := range map[string]abilities{
		"load": {Load: true}, "load and list": {Load: true, List: true, Page: 1},
		"load, resume and close": {Load: true, Resume: true, Close: true},
	} {
		t.Run("A31/"+name, func(t *testing.T) {
			a.Dir = t.TempDir()
			h, v := connected(t, a, proxy.Options{})
			roots, elsewhere := roots(t, 0), roots(t, 0)
			file := func(id string) string { return filepath.Join(a.Dir, id+".json") }
			for _, id := range []string{"mine", "other"} {
				raw := backend.Encode(simulatedSession{Cwd: roots.Cwd().String(),
					Updates: []json.RawMessage{chunk("user", "before"),
						chunk("agent", "1:before")}})
				require.NoError(t, os.WriteFile(file(id), raw, 0o600))
			}
			for range 2 {
				_, err := v.LoadSession(t.Context(), "unknown", client.Setup{Roots: roots})
				var refused *jsonrpc.Error
				require.ErrorAs(t, err, &refused)
				require.Equal(t, -32002, refused.Code)
				if a.List {
					_, err = v.LoadSession(t.Context(), "mine", client.Setup{Roots: elsewhere})
					require.ErrorContains(t, err, roots.Cwd().String(), "A11")
				}
			}
			page, err := h.store.List(t.Context(), sessionstore.Query{})
			require.NoError(t, err)
			require.Empty(t, page.Sessions, "a failed attempt leaves nothing")

			v.load("mine", roots)
			require.Equal(t, []string{"user before", "agent 1:before"}, v.shown())
			require.Equal(t, "agent N:before+x", v.prompt("mine", "x"))
			require.Equal(t, []string{"before", "1:before", "x", "N:before+x"}, h.history("mine"))
			n := 0
			for s, err := range v.Sessions(t.Context(), client.Query{}) {
				require.NoError(t, err)
				if s.ID == "mine" {
					n++
				}
			}
			require.Equal(t, 1, n)
			v.disconnect()

			v = h.connect()
			if a.Resume {
				_, err = v.ResumeSession(t.Context(), "other", client.Setup{Roots: roots})
				require.NoError(t, err)
				require.Equal(t, "agent N:before+y", v.prompt("other", "y"))
			}
			v.load("mine", roots)
			require.Equal(t, "agent N:before+x+z", v.prompt("mine", "z"))
			v.disconnect()
			require.NotContains(t, methods(h.received()), "session/new")
		})
	}
}

// Clause A31.
func TestSessionIsOpenUnderAnotherID(t *testing.T) {
	_, v := connected(t, abilities{Load: true, Close: true}, proxy.Options{})
	roots := roots(t, 0)
	s := v.open(roots)
	require.Equal(t, "agent N:x", v.prompt(s.ID, "x"))
	_, err := v.LoadSession(t.Context(), "c1", client.Setup{Roots: roots})
	require.ErrorContains(t, err, "close that one first")
	require.Equal(t, "agent N:x+y", v.prompt(s.ID, "y"), "it goes on")
	require.NoError(t, v.CloseSession(t.Context(), s.ID))
	v.load("c1", roots)
	require.Equal(t, "agent N:x+y+z", v.prompt("c1", "z"))
}
