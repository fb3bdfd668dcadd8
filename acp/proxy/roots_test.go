package proxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func newRequest(params string) []string {
	return []string{`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` + params + `}`}
}

// Clause P3.
func TestFullList(t *testing.T) {
	h, v := connected(t, abilities{Load: true, Resume: true, Fork: true, Roots: true}, proxy.Options{})
	all := roots(t, 3)
	s := v.open(all)
	require.Equal(t, spelled(all), h.directories("session/new"))
	v.disconnect()
	v = h.connect()
	for _, given := range []workspace.Roots{with(all, all.At(3).String(), all.At(1).String()),
		with(all), all} {
		v.load(s.ID, given)
		require.Equal(t, spelled(given), h.directories("session/load"))
		_, err := v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: given})
		require.NoError(t, err)
		require.Equal(t, spelled(given), h.directories("session/resume"))
		_, err = v.ForkSession(t.Context(), s.ID, client.Setup{Roots: given})
		require.NoError(t, err)
		require.Equal(t, spelled(given), h.directories("session/fork"))
	}
}

// An agent that ignores the list of a load is told of the directories, and given tools for them,
// like one that takes none.
//
// Clause P3.
func TestListIgnoredByLoads(t *testing.T) {
	o := withTools(t, profiles.Profile{Roots: profiles.Roots{OnlyNew: true}})
	h, v := connected(t, abilities{Load: true, Resume: true, Roots: true}, o)
	all := roots(t, 2)
	s := v.open(all)
	require.Equal(t, spelled(all), h.directories("session/new"))
	require.Empty(t, h.servers("session/new"))
	v.prompt(s.ID, "one")
	require.NotContains(t, strings.Join(h.lastPrompt(), ""), "This session has several folders")
	v.disconnect()
	v = h.connect()
	v.load(s.ID, all)
	require.Nil(t, h.directories("session/load"))
	require.Len(t, h.servers("session/load"), 1)
	h.servers("session/load")[0].serves(t, all)
	v.prompt(s.ID, "two")
	require.Contains(t, strings.Join(h.lastPrompt(), ""), "This session has several folders")
	require.Contains(t, strings.Join(h.lastPrompt(), ""), all.At(2).String())

	s = v.open(all)
	v.crash(s.ID)
	v.prompt(s.ID, "three")
	require.Len(t, h.servers("session/resume"), 1, "after the agent has started again")
	h.servers("session/resume")[0].serves(t, all)
}

// An agent may keep directories that a load does not name, until it makes a copy of the session.
//
// Clause A24.
func TestCopyWithoutRemovedRoots(t *testing.T) {
	keeps := proxy.Options{Profile: profiles.Profile{Roots: profiles.Roots{Keeps: true}}}
	able := abilities{Load: true, Resume: true, Fork: true, List: true, Delete: true, Close: true,
		Roots: true}
	for name, c := range map[string]struct {
		forks  bool
		copied string // the method that makes the copy
		knows  string // what the copy knows of the conversation
	}{
		"by fork":      {true, "session/fork", "N:one+two"},
		"without fork": {false, "session/new", "N:~one+two"},
	} {
		t.Run(name, func(t *testing.T) {
			a := able
			a.Fork = c.forks
			h, v := connected(t, a, keeps)
			all := roots(t, 2)
			s := v.open(all)
			v.prompt(s.ID, "one")
			v.load(s.ID, all)
			require.Equal(t, 1, h.count("session/load"), "the same roots")

			fewer := with(all, all.At(2).String())
			v.shown()
			v.load(s.ID, fewer)
			require.Equal(t, 1, h.count("session/load"))
			require.Equal(t, spelled(fewer), h.directories(c.copied))
			require.Contains(t, strings.Join(v.shown(), "\n"), "N:one",
				"A27: the conversation is shown")
			require.Equal(t, "agent "+c.knows, v.prompt(s.ID, "two"))
			require.Equal(t, 1, h.count("session/delete"), "of the session that was copied")
			listed := 0
			for _, err := range v.Sessions(t.Context(), client.Query{}) {
				require.NoError(t, err)
				listed++
			}
			require.Equal(t, 1, listed)
			v.disconnect()

			v = h.connect()
			_, err := v.ResumeSession(t.Context(), s.ID,
				client.Setup{Roots: with(all, all.At(2).String(), all.At(1).String())})
			require.NoError(t, err)
			require.Equal(t, 1, h.count("session/resume"), "more roots, in another process")
			v.disconnect()
			v = h.connect()
			_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: with(all)})
			require.NoError(t, err)
			require.Equal(t, 1, h.count("session/resume"))
			require.Empty(t, h.directories(c.copied))
			require.Equal(t, 2, h.count("session/delete"))
			require.True(t, strings.HasSuffix(v.prompt(s.ID, "three"), "three"))
		})
	}
	t.Run("A12/nothing is deleted if the load fails", func(t *testing.T) {
		h := newSystem(t, able, keeps)
		store := &full{Store: memstore.New(t)}
		h.store = store
		all := roots(t, 1)
		v := h.connect()
		s := v.open(all)
		v.prompt(s.ID, "one")
		store.is.Store(true)
		_, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(all)})
		require.ErrorContains(t, err, diskFull())
		require.Zero(t, h.count("session/delete"))
		require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"))
	})
}

// count returns how many requests of a method the agent has received.
func (h *system) count(method string) (n int) {
	for _, r := range h.received() {
		if r.method == method {
			n++
		}
	}
	return n
}

func flagged() profiles.Profile { return profiles.Profile{Roots: profiles.Roots{Flag: "--add-dir"}} }

func TestRootsByFlagsFailedLoad(t *testing.T) {
	h, v := connected(t, abilities{Load: true, Refuse: "session/load", Code: -32000},
		proxy.Options{Profile: flagged()})
	first := roots(t, 1)
	s := v.open(first)
	v.prompt(s.ID, "one")
	for range 2 {
		_, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
		require.Error(t, err)
		_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, t.TempDir())})
		require.Error(t, err)
	}
	require.Equal(t, "agent N:one+two", v.prompt(s.ID, "two"))
	require.Len(t, h.starts(), 4, "two with other roots, which have ended")
	require.NoError(t, v.CloseSession(t.Context(), s.ID))
}

// The user adds a folder in a session, and later removes it. The agent gets the new list as after a
// session/resume of the client.
//
// Clause A33.
func TestAddedFolderReachesChild(t *testing.T) {
	for name, c := range map[string]struct {
		abilities
		// of the request with the new list, "" if the child is told in its next prompt
		method string
	}{
		"resume":  {abilities{Load: true, Resume: true, Roots: true}, "session/resume"},
		"load":    {abilities{Load: true, Roots: true}, "session/load"},
		"new":     {abilities{Roots: true}, "session/new"},
		"context": {abilities{Load: true, Resume: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, v := connected(t, c.abilities, proxy.Options{})
			all := roots(t, 2)
			added := workspace.Real(all.At(2))
			s := v.open(with(all, all.At(1).String()))
			v.prompt(s.ID, "one")
			const named = " Your editor names the folders of this session itself: when it opens " +
				"the session again, it uses its own list.\n"
			require.Equal(t, "agent Added `"+added.String()+"`."+named,
				v.prompt(s.ID, "/roots add "+all.At(2).String()), "nothing is replayed")
			if c.method != "" {
				require.Equal(t, []string{all.At(1).String(), added.String()},
					h.directories(c.method))
			}
			v.prompt(s.ID, "two")
			require.Contains(t, strings.Join(h.lastPrompt(), ""), "two")
			if c.method != "session/new" { // which is given the conversation instead
				require.Equal(t, c.method == "",
					strings.Contains(strings.Join(h.lastPrompt(), ""), added.String()))
			}
			require.Contains(t, v.prompt(s.ID, "/roots"), added.String())
			require.Equal(t, "agent Removed `"+added.String()+"`."+named,
				v.prompt(s.ID, "/roots remove "+added.String()))
			if c.method != "" {
				require.Equal(t, []string{all.At(1).String()}, h.directories(c.method))
			}
			for _, prompt := range h.prompts() {
				require.False(t, strings.HasPrefix(prompt[len(prompt)-1], "/roots"),
					"the child is not asked")
			}
		})
	}
}
