package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// lasting returns a server of remote peers that may open dir, and a function that connects one.
func lasting(
	t *testing.T, dir string, so acp.ServerOptions, o acp.Options,
) (*acp.Server, func() *client) {
	t.Helper()
	s := newServer(t, so, allowing(t, dir, o))
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	return s, func() *client {
		c := connectTo(t, s, acp.Peer{Principal: "ann", Remote: true})
		c.initialize()
		return c
	}
}

// allowing returns options for remote peers that may open dir.
func allowing(t tester, dir string, o acp.Options) acp.Options {
	root, err := workspace.ParseDir(dir)
	require.NoError(t, err)
	o.Workspace.Policy.Allow = []workspace.Dir{root}
	return o
}

// stepper returns a backend whose prompt "steps" says a number for each value that it receives from
// next, until that is closed.
func stepper(next <-chan struct{}) *scripted {
	prompted := func(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
		if !strings.Contains(string(params), `"steps"`) {
			return nil
		}
		return func() (backend.Raw, error) {
			for i := 0; ; i++ {
				select {
				case _, more := <-next:
					if !more {
						return backend.Stopped("end_turn"), nil
					}
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
				if err := u.Update(ctx, backend.Text(fmt.Sprintf("%d,", i))); err != nil {
					return nil, err
				}
			}
		}
	}
	return &scripted{prompted: prompted}
}

// ended reports how a turn ended that was joined.
func ended(id string) func(message) bool {
	return func(m message) bool {
		return strings.Contains(string(m.Params), `"turn":`) && strings.Contains(string(m.Params), id)
	}
}

// A connection is cut after each update of a turn, and another one joins: it is shown every update
// once and in order, whenever it comes.
//
// Clause N2.
func TestJoinAfterEachUpdate(t *testing.T) {
	const updates = 12
	dir := folder(t)
	for cut := range updates + 1 {
		for _, missed := range []int{0, 1, updates - cut} {
			if cut+missed > updates || missed == 1 && cut == updates-1 {
				continue
			}
			t.Run(fmt.Sprintf("N2/%d+%d", cut, missed), func(t *testing.T) {
				next := make(chan struct{})
				r := stepper(next)
				_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{Backend: using(r)})
				first := connect()
				id := first.open(dir)
				require.Equal(t, []string{"before"}, first.texts(id, "say before"))
				first.post("session/prompt", promptParams(id, "steps"))
				for i := range cut {
					next <- struct{}{}
					first.await(0, said(fmt.Sprintf("%d,", i)))
				}
				first.leave()
				for range missed {
					next <- struct{}{}
				}
				second := connect()
				going := make(chan struct{})
				go func() { // while it joins
					defer close(going)
					for range updates - cut - missed {
						next <- struct{}{}
					}
				}()
				result := second.call("session/load", rootsParams(id, dir))
				require.Contains(t, string(result), `"turn":{"running":true}`)
				<-going
				close(next)
				end, _ := second.await(0, ended(id))
				require.Contains(t, string(end.Params), `"stopReason":"end_turn"`)
				want := "before"
				for i := range updates {
					want += fmt.Sprintf("%d,", i)
				}
				require.Equal(t, want, strings.Join(texts(second.messages(), id), ""))

				require.Equal(t, []string{"after"}, second.texts(id, "say after"))
				second.leave()
				third := connect()
				third.call("session/load", rootsParams(id, dir))
				require.Equal(t, want+"after", strings.Join(texts(third.messages(), id), ""),
					"it is stored like this too")
			})
		}
	}
}

// Requests that follow a load are served after it, as on the first connection.
//
// Clauses N2, W5.
func TestRequestsRightAfterJoin(t *testing.T) {
	dir := folder(t)
	_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	first := connect()
	id := first.open(dir)
	first.beginTurn(id, "wait", "waiting")
	first.leave()
	second := connect()
	load, line := second.request("session/load", rootsParams(id, dir))
	prompt, next := second.request("session/prompt", promptParams(id, "say next"))
	second.send(line, notification("session/cancel", idParams(id)), next)
	require.Nil(t, second.response(load).Error)
	require.Equal(t, "end_turn", second.response(prompt).stopReason(t))
	require.Contains(t, texts(second.messages(), id), "next")
}

// A load with other roots or MCP servers is no join: it opens the session anew.
//
// Clause N2.
func TestLoadWithOtherRootsEndsTheTurn(t *testing.T) {
	dir := folder(t)
	more := filepath.Join(dir, "more")
	require.NoError(t, os.Mkdir(more, 0o700))
	_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	first := connect()
	id := first.open(dir)
	first.beginTurn(id, "wait", "waiting")
	first.leave()
	second := connect()
	result := second.call("session/load", rootsParams(id, dir, more))
	require.NotContains(t, string(result), "running")
	require.Contains(t, second.texts(id, "roots")[0], more)
}

// A question that is asked while nobody is there waits for a client that joins.
//
// Clause N2.
func TestQuestionWaitsForAClient(t *testing.T) {
	dir := folder(t)
	_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	first := connect()
	id := first.open(dir)
	first.post("session/prompt", promptParams(id, askPermission))
	first.leave()
	second := connect()
	second.call("session/load", rootsParams(id, dir))
	asked, at := second.await(0, isQuestion)
	loaded := -1
	for i, m := range second.messages() {
		if m.Method == "" {
			loaded = i
		}
	}
	require.Less(t, loaded, at, "the question follows the response of the load")
	require.Contains(t, string(asked.Params), `"sessionId":"`+id+`"`)
	second.reply(asked, yes)
	end, _ := second.await(0, ended(id))
	require.Contains(t, string(end.Params), `"end_turn"`)
	require.Contains(t, strings.Join(texts(second.messages(), id), ""), "selected")
	require.Len(t, second.questions(), 1)
}

// Clause N2.
func TestGrace(t *testing.T) {
	dir := folder(t)
	r := &scripted{}
	s, connect := lasting(t, dir, acp.ServerOptions{Grace: time.Millisecond},
		acp.Options{Backend: using(r)})
	first := connect()
	id, idle := first.open(dir), first.open(dir)
	first.beginTurn(id, "wait", "waiting")
	first.leave()
	require.Eventually(t, func() bool {
		return strings.Count(strings.Join(r.noted(), "\n"), "close") == 2
	}, patience, time.Millisecond, "the turn was cancelled, and both sessions closed")
	require.Contains(t, r.noted(), "cancel ")
	second := connect()
	require.NotContains(t, string(second.call("session/load", rootsParams(id, dir))), "running")
	require.Equal(t, []string{"waitinglast words"}, texts(second.messages(), id))
	second.call("session/load", rootsParams(idle, dir))
	second.leave()
	require.NoError(t, s.Shutdown(t.Context()))
}

// Clause N2.
func TestTurnsWithoutGrace(t *testing.T) {
	dir := folder(t)
	r := &scripted{}
	_, connect := lasting(t, dir, acp.ServerOptions{Grace: -1}, acp.Options{Backend: using(r)})
	c := connect()
	id := c.open(dir)
	turn := c.beginTurn(id, "wait", "waiting")
	c.leave()
	require.Equal(t, "cancelled", c.response(turn).stopReason(t))
	require.Contains(t, r.noted(), "close")
}

// The program may end a connection for good, for example because its user may no longer connect.
//
// Clause N2.
func TestTurnsEndWithTheContextOfServe(t *testing.T) {
	dir := folder(t)
	r := &scripted{}
	_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{Backend: using(r)})
	awaitCloses := func(n int, why string) {
		require.Eventually(t, func() bool {
			return strings.Count(strings.Join(r.noted(), "\n"), "close") == n
		}, patience, time.Millisecond, why)
	}
	first := connect()
	id := first.open(dir)
	turn := first.beginTurn(id, "wait", "waiting")
	first.stop()
	require.Equal(t, "cancelled", first.response(turn).stopReason(t))
	awaitCloses(1, "another load would join it")

	first = connect()
	first.call("session/load", rootsParams(id, dir))
	first.beginTurn(id, "wait", "waiting")
	first.leave()
	second := connect()
	second.call("session/load", rootsParams(id, dir))
	second.stop()
	awaitCloses(2, "the session that it had joined is closed")
}

// Shutdown waits for a turn that no client sees.
func TestShutdownWithTurnOfNobody(t *testing.T) {
	for _, patient := range []bool{true, false} {
		dir := folder(t)
		next := make(chan struct{})
		r := stepper(next)
		s, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{Backend: using(r)})
		c := connect()
		id := c.open(dir)
		c.post("session/prompt", promptParams(id, "steps"))
		next <- struct{}{}
		c.leave()
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(ctx) }()
		next <- struct{}{}
		if patient {
			close(next)
			require.NoError(t, <-ended)
		} else {
			giveUp()
			require.ErrorIs(t, <-ended, context.Canceled)
		}
		giveUp()
	}
}

// A principal is ended with everything that goes on for it, also without a connection, and can
// connect again.
func TestEndOfPrincipal(t *testing.T) {
	dir := folder(t)
	s, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	left, stays := connect(), connect()
	for _, c := range []*client{left, stays} {
		id := c.open(dir)
		c.beginTurn(id, "wait", "waiting")
	}
	left.leave()
	require.Nil(t, s.End("another"))
	require.Equal(t, 2, s.Used().Turns)
	s.End("ann")()
	require.Eventually(t, func() bool { return s.Used() == acp.Limits{} }, patience, time.Millisecond)
	require.Nil(t, s.End("ann"))
	again := connect()
	require.Equal(t, []string{"x"}, again.texts(again.open(dir), "say x"))
}

// A load that fails because its principal has ended frees nothing again.
func TestEndOfPrincipalDuringLoad(t *testing.T) {
	dir, store := folder(t), &hooked{Store: memstore.New(t)}
	s, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{Store: store})
	first, second := connect(), connect()
	id := first.open(dir)
	second.call("session/load", rootsParams(id, dir))
	first.leave()
	reached, goOn := make(chan struct{}), make(chan struct{})
	store.getting = func() {
		close(reached)
		<-goOn
	}
	second.post("session/load", rootsParams(id, dir))
	<-reached
	s.End("ann")
	require.Eventually(t, func() bool { return s.Used().Sessions == 0 }, patience, time.Millisecond)
	close(goOn)
	require.NoError(t, s.Shutdown(t.Context()))
	require.Equal(t, acp.Limits{}, s.Used())
}

// slowClose is a backend that ends late.
type slowClose struct {
	scripted
	goOn   chan struct{}
	closed atomic.Bool
}

func (s *slowClose) Close(ctx context.Context) error {
	select {
	case <-s.goOn:
	case <-ctx.Done():
	}
	s.closed.Store(true)
	return nil
}

// The function that End returns waits until no more requests are read, not until backends end.
func TestEndOfPrincipalWithSlowBackend(t *testing.T) {
	dir, r := folder(t), &slowClose{goOn: make(chan struct{})}
	s := newServer(t, acp.ServerOptions{Grace: -1}, allowing(t, dir, acp.Options{Backend: using(r)}))
	connectTo(t, s, acp.Peer{Principal: "ann", Remote: true}).initialize()
	s.End("ann")()
	require.False(t, r.closed.Load())
	close(r.goOn)
	require.NoError(t, s.Shutdown(t.Context()))
}
