package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
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
		turn, line := c.request("session/prompt", promptParams(id, "stubborn"))
		c.send(line)
		c.await(0, said("stubborn"))

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
