package acp_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// Many connections of a few principals do anything with any session, and come and go. None ever
// sees a session of another principal, whatever ids it guesses.
//
// Clauses N1, N2.
func TestPrincipalsAreApart(t *testing.T) {
	perPrincipal, steps := volume.Of(15, 50), 12
	dir := folder(t)
	root, err := workspace.ParseDir(dir)
	require.NoError(t, err)
	s := newServer(t, acp.ServerOptions{}, acp.Options{
		Workspace: workspace.Options{Policy: workspace.Policy{Allow: []workspace.Dir{root}}}})
	known := &sessionsOf{owner: make(map[string]string), cancelled: make(map[[2]string]bool)}
	var connections sync.WaitGroup
	for i, principal := range []string{"ann", "bob", "eve", "joe"} {
		for j := range perPrincipal {
			connections.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				u := &user{t: t, server: s, principal: principal, dir: dir, rand: r, known: known}
				u.connect()
				defer func() { u.leave() }()
				for range steps {
					u.step()
				}
			})
		}
	}
	connections.Wait()
	ended, end := context.WithCancel(context.Background())
	end() // turns that nobody waits for
	_ = s.Shutdown(ended)
}

// sessionsOf are the sessions of all principals.
type sessionsOf struct {
	mu    sync.Mutex
	ids   []string
	owner map[string]string
	// cancelled has each session with the principals who have cancelled its turns.
	cancelled map[[2]string]bool
}

func (s *sessionsOf) cancel(id, principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled[[2]string{id, principal}] = true
}

func (s *sessionsOf) cancelledBy(id, principal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled[[2]string{id, principal}]
}

func (s *sessionsOf) add(id, principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, id)
	s.owner[id] = principal
}

func (s *sessionsOf) ownerOf(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner[id]
}

func (s *sessionsOf) any(r *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 {
		return "sess_none"
	}
	return s.ids[r.IntN(len(s.ids))]
}

// user is a connection of a principal that does anything.
type user struct {
	*client
	t         *testing.T
	server    *acp.Server
	principal string
	dir       string
	rand      *rand.Rand
	known     *sessionsOf
}

func (u *user) connect() {
	u.client = connectTo(u.t, u.server, acp.Peer{Principal: u.principal, Remote: true})
	u.initialize()
}

// step sends a request about a random session, or leaves and returns.
func (u *user) step() {
	id := u.known.any(u.rand)
	method := []string{"session/new", "session/load", "session/resume", "session/fork",
		"session/list", "session/prompt", "session/prompt", "session/close", "session/delete",
		"session/set_title", "session/status", "leave", "cancel"}[u.rand.IntN(13)]
	params := rootsParams(id, u.dir)
	switch method {
	case "leave":
		u.leave()
		u.connect()
		return
	case "cancel":
		u.known.cancel(id, u.principal)
		u.send(notification("session/cancel", idParams(id)))
		return
	case "session/new":
		params = rootsParams("", u.dir)
	case "session/list":
		params = "{}"
	case "session/prompt":
		params = promptParams(id, []string{"say " + u.principal, "count 20", "wait"}[u.rand.IntN(3)])
	case "session/set_title":
		params = encode(map[string]string{"sessionId": id, "title": u.principal})
	}
	request, line := u.request(method, params)
	u.send(line)
	if method == "session/prompt" && u.known.ownerOf(id) == u.principal {
		return // "wait" is answered when it is cancelled, and so are prompts that wait for it
	}
	u.check(u.response(request), method, id)
}

// check checks that a response tells nothing about another principal's session.
func (u *user) check(m message, method, id string) {
	foreign := u.known.ownerOf(id) != u.principal
	switch {
	case method == "session/list":
		var result struct{ Sessions []listed }
		require.NoError(u.t, json.Unmarshal(m.Result, &result))
		for _, s := range result.Sessions {
			owner := u.known.ownerOf(s.SessionID)
			require.Contains(u.t, []string{"", u.principal}, owner) // "" if it is not known yet
			require.Contains(u.t, []string{"", u.principal, "count 20", "wait", "say " + u.principal},
				s.Title)
		}
	case method == "session/new", method == "session/fork" && !foreign && m.Error == nil:
		require.Nil(u.t, m.Error)
		var result struct{ SessionID string }
		require.NoError(u.t, json.Unmarshal(m.Result, &result))
		u.known.add(result.SessionID, u.principal)
	case foreign && method == "session/delete", foreign && method == "session/close":
		require.True(u.t, m.Error == nil || m.reason(u.t) == "not_found", "%s: %+v", method, m.Error)
	case foreign && method == "session/prompt" && string(m.Result) == `{"stopReason":"cancelled"}`:
		// Another connection of this principal cancelled it before the session was looked for.
		require.True(u.t, u.known.cancelledBy(id, u.principal), "only its own principal cancels it")
	case foreign:
		require.NotNil(u.t, m.Error, "%s: %+v", method, m)
		require.Equal(u.t, "not_found", m.reason(u.t), "%s: %+v", method, m.Error)
	}
}

func (u *user) leave() {
	u.client.leave()
	for _, m := range u.messages() {
		var p struct{ SessionID string }
		if m.Method != "session/update" || json.Unmarshal(m.Params, &p) != nil {
			continue
		}
		owner := u.known.ownerOf(p.SessionID)
		require.True(u.t, slices.Contains([]string{"", u.principal}, owner), "%s", m.Params)
		for _, text := range texts([]message{m}, p.SessionID) {
			for _, other := range []string{"ann", "bob", "eve", "joe"} {
				require.True(u.t, other == u.principal || !strings.Contains(text, other), text)
			}
		}
	}
}
