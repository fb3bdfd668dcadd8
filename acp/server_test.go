package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// When its context ends, Serve answers a running turn before it closes the only connection.
//
// Clause W9.
func TestContextEndsOverOneConnection(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run("W9/"+network, func(t *testing.T) {
			near, far := net.Pipe()
			if network == "tcp" {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				defer l.Close()
				far, err = net.Dial("tcp", l.Addr().String())
				require.NoError(t, err)
				near, err = l.Accept()
				require.NoError(t, err)
			}
			defer far.Close()
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() {
				served <- serve(ctx, near, near, acp.Options{Store: memstore.New(t),
					Backend: using(&scripted{})})
			}()
			lines := bufio.NewScanner(far)
			say := func(line string) {
				_, err := io.WriteString(far, line+"\n")
				require.NoError(t, err)
			}
			until := func(part string) string {
				for lines.Scan() {
					if strings.Contains(lines.Text(), part) {
						return lines.Text()
					}
				}
				require.FailNow(t, "the connection ended first", part)
				return ""
			}
			say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
			until(`"id":1`)
			say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` + rootsParams("", folder(t)) + `}`)
			_, id, _ := strings.Cut(until(`"id":2`), `"sessionId":"`)
			id, _, _ = strings.Cut(id, `"`)
			say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":` + promptParams(id, "wait") + `}`)
			until("waiting")
			stop()
			require.Contains(t, until(`"id":3`), `"cancelled"`)
			go io.Copy(io.Discard, far)
			require.NoError(t, <-served)
		})
	}
}

// newServer returns a server with a scripted backend for each connection and the principals' views
// of one store, unless o has others.
func newServer(t tester, so acp.ServerOptions, o acp.Options) *acp.Server {
	shared := memstore.New(t)
	so.Options = func(p acp.Peer) (acp.Options, error) {
		own := o
		if o.Store == nil {
			own.Store = shared.For(p.Principal)
		}
		if o.Backend == nil {
			own.Backend = func() backend.Backend { return &scripted{} }
		}
		return own, nil
	}
	return acp.NewServer(so)
}

func TestLimits(t *testing.T) {
	s := newServer(t, acp.ServerOptions{
		PerPeer: acp.Limits{Connections: 2, Sessions: 2, Turns: 1},
		Total:   acp.Limits{Connections: 4, Sessions: 3, Turns: 2},
	}, acp.Options{})
	dir := folder(t)
	clients := make(map[string]*client)
	for _, name := range []string{"ann1", "ann2", "bob1", "eve1"} {
		clients[name] = connectTo(t, s, acp.Peer{Principal: name[:3]})
		clients[name].initialize()
	}
	refused := func(c *client, method, params, reason, message string) {
		t.Helper()
		m := c.try(method, params)
		require.Equal(t, reason, m.reason(t))
		require.Equal(t, message, m.Error.Message)
	}

	first, second := clients["ann1"].open(dir), clients["ann2"].open(dir)
	refused(clients["ann1"], "session/new", rootsParams("", dir), "too_many_sessions",
		"too many active sessions: the limit is 2; close one first")
	others := clients["bob1"].open(dir)
	refused(clients["eve1"], "session/new", rootsParams("", dir), "too_many_sessions",
		"the server has too many active sessions of all users: the limit is 3; try again later")

	turn, line := clients["ann1"].request("session/prompt", promptParams(first, "wait"))
	clients["ann1"].send(line)
	running := func(turns int) {
		t.Helper()
		require.Eventually(t, func() bool { return s.Used().Turns == turns }, patience, time.Millisecond)
	}
	running(1)
	refused(clients["ann2"], "session/prompt", promptParams(second, "say x"), "too_many_turns",
		"too many running turns: the limit is 1; wait for an answer, or send session/cancel")
	require.Equal(t, []string{"x"}, clients["bob1"].texts(others, "say x"))
	clients["ann1"].send(notification("session/cancel", idParams(first)))
	require.Equal(t, "cancelled", clients["ann1"].response(turn).stopReason(t))
	running(0) // which is after the response was written
	require.Equal(t, []string{"x"}, clients["ann2"].texts(second, "say x"))

	for principal, message := range map[string]string{
		"ann": "too many connections: the limit is 2; close one first",
		"new": "the server has too many connections of all users: the limit is 4; try again later",
	} {
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Serve(t.Context(), acp.NewLines(near, near), acp.Peer{Principal: principal}) }()
		_, err := io.WriteString(far, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(far)
		require.NoError(t, err)
		require.Contains(t, string(answer), `"id":1,"error":`)
		require.Contains(t, string(answer), message)
		require.EqualError(t, <-served, "acp: "+message)
	}
	clients["ann1"].leave()
	clients["ann2"].open(dir)
	connectTo(t, s, acp.Peer{Principal: "ann"}).initialize()
}

// Shutdown lets running turns end, and refuses new work meanwhile.
func TestShutdown(t *testing.T) {
	dir := folder(t)
	root, err := workspace.ParseDir(dir)
	require.NoError(t, err)
	for i := range 4 {
		patient, remote := i%2 == 0, i > 1
		r := &scripted{release: make(chan struct{})}
		s := newServer(t, acp.ServerOptions{}, acp.Options{Backend: using(r),
			Workspace: workspace.Options{Policy: workspace.Policy{Allow: []workspace.Dir{root}}}})
		c := connectTo(t, s, acp.Peer{Remote: remote})
		c.initialize()
		id := c.open(dir)
		turn := c.beginTurn(id, "stubborn", "stubborn")

		ctx, giveUp := context.WithCancelCause(t.Context())
		defer giveUp(nil)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(ctx) }()
		require.Eventually(t, func() bool {
			near, _ := net.Pipe()
			closed, cancel := context.WithCancel(t.Context())
			cancel()
			err := s.Serve(closed, acp.NewLines(near, near), acp.Peer{})
			return errors.Is(err, acp.ErrServerClosed)
		}, patience, time.Millisecond)
		for method, params := range map[string]string{
			"session/new": rootsParams("", dir), "session/prompt": promptParams(id, "say x"),
		} {
			require.Equal(t, "shutting_down", c.try(method, params).reason(t))
		}
		select {
		case <-ended:
			require.Fail(t, "the turn was not waited for")
		default:
		}
		if patient {
			close(r.release)
			require.NoError(t, <-ended)
			require.Equal(t, "end_turn", c.response(turn).stopReason(t))
			continue
		}
		giveUp(errors.New("no time"))
		require.Equal(t, "cancelled", c.response(turn).stopReason(t))
		close(r.release)
		require.EqualError(t, <-ended, "no time")
	}
}

func TestServeFailsWithoutOptions(t *testing.T) {
	s := acp.NewServer(acp.ServerOptions{Options: func(p acp.Peer) (acp.Options, error) {
		return acp.Options{}, errors.New(p.Principal + " is unknown")
	}})
	near, _ := net.Pipe()
	require.EqualError(t, s.Serve(t.Context(), acp.NewLines(near, near), acp.Peer{Principal: "ann"}),
		"ann is unknown")
	require.NoError(t, s.Shutdown(t.Context()))
}

// A message over the limit is rejected like a long line.
func TestLongMessageOverConn(t *testing.T) {
	sent := make(chan []byte, 2)
	c := &chanConn{in: make(chan []byte, 2), out: sent, ended: make(chan struct{})}
	s := newServer(t, acp.ServerOptions{}, acp.Options{MaxLine: 100})
	c.in <- []byte(`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", 100) + `"}`)
	c.in <- []byte(`{"jsonrpc":"2.0","id":8,"method":"session/list"}`)
	close(c.in)
	require.NoError(t, s.Serve(t.Context(), c, acp.Peer{}))
	require.Contains(t, string(<-sent), `"id":7,"error":{"code":-32600,"message":"the message is longer`)
	require.Contains(t, string(<-sent), `"id":8,`)
	<-c.ended
}

// chanConn is a Conn over channels.
type chanConn struct {
	in    chan []byte
	out   chan<- []byte
	ended chan struct{}
	once  sync.Once
}

func (c *chanConn) Read() ([]byte, error) {
	select {
	case message, ok := <-c.in:
		if !ok {
			return nil, io.EOF
		}
		return message, nil
	case <-c.ended:
		return nil, net.ErrClosed
	}
}

func (c *chanConn) Write(_ context.Context, message []byte) error {
	select {
	case c.out <- bytes.Clone(message):
		return nil
	case <-c.ended:
		return net.ErrClosed
	}
}

func (c *chanConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return nil
}

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
	request := u.post(method, params)
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
