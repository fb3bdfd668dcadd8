package acp_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause N4.
func TestObserveIsToldWhatHappens(t *testing.T) {
	var mu sync.Mutex
	var events []acp.Event
	c := start(t, acp.Options{Observe: func(e acp.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}})
	a, b := folder(t), folder(t)
	id := c.open(a)
	c.permit("allow-once")
	require.Contains(t, c.say(id, "/roots add "+b), "Added")
	c.try("session/load", rootsParams("unknown", a))

	mu.Lock()
	defer mu.Unlock()
	var methods []string
	var opened [][]string
	var answers, asked []string
	for _, e := range events {
		switch e := e.(type) {
		case acp.RequestEvent:
			methods = append(methods, e.Method)
			require.Equal(t, e.Method == "session/load", e.Err != nil, "%v", e)
		case acp.OpenEvent:
			require.EqualValues(t, id, e.Session)
			var dirs []string
			for _, dir := range e.Roots {
				dirs = append(dirs, dir.String())
			}
			opened = append(opened, dirs)
		case acp.AnswerEvent:
			require.EqualValues(t, id, e.Session)
			require.Contains(t, e.Title, b)
			answers = append(answers, e.Choice)
			require.Positive(t, e.Duration)
		case acp.QuestionEvent:
			asked = append(asked, fmt.Sprint("asks ", e.Open))
		case acp.TurnEvent:
			require.Equal(t, sessionstore.ID(id), e.Session)
			require.NoError(t, e.Err)
			asked = append(asked, fmt.Sprint("runs ", e.Running, e.StopReason))
		}
	}
	require.Equal(t, []string{"initialize", "session/new", "session/prompt", "session/load"}, methods)
	real := func(dir string) string {
		d, err := workspace.ParseDir(dir)
		require.NoError(t, err)
		return workspace.Real(d).String()
	}
	require.Equal(t, [][]string{{real(a)}, {real(a), real(b)}}, opened)
	require.Equal(t, []string{"allow_once"}, answers)
	require.Equal(t, []string{"runs true", "asks true", "asks false", "runs falseend_turn"}, asked)
}

func TestFailedPromptIsObserved(t *testing.T) {
	var failed sync.Map
	c := start(t, acp.Options{Observe: func(e acp.Event) {
		if r, ok := e.(acp.RequestEvent); ok && r.Err != nil {
			failed.Store(r.Method, r.Err.Error())
		}
	}})
	m := c.try("session/prompt", promptParams(c.open(folder(t)), "fail"))
	why, _ := failed.Load("session/prompt")
	require.Contains(t, why, m.Error.Message)
}

// A turn, and what it used, are events of the client that sent the prompt, even if another one has
// opened the session.
//
// Clause N4.
func TestTurnsAreOfWhoPrompts(t *testing.T) {
	dir, r, store := folder(t), &scripted{}, memstore.New(t)
	var mu sync.Mutex
	var events []string
	s := acp.NewServer(acp.ServerOptions{Options: func(p acp.Peer) (acp.Options, error) {
		return allowing(t, dir, acp.Options{Backend: using(r), Store: store,
			Observe: func(e acp.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch e := e.(type) {
				case acp.TurnEvent:
					events = append(events, fmt.Sprint(p.Via, " runs ", e.Running))
				case acp.UsageEvent:
					events = append(events, p.Via+" uses")
				}
			}}), nil
	}})
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	by := func(token string) *client {
		c := connectTo(t, s, acp.Peer{Principal: "ann", Via: token, Remote: true})
		c.initialize()
		return c
	}
	first, second := by("first"), by("second")
	id := first.open(dir)
	second.call("session/load", rootsParams(id, dir))
	second.texts(id, "spend 1")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"second runs true", "second uses", "second runs false"}, events)
}

// A rule that refuses a request before the session is live answers no question.
func TestRefusedBeforeLiveIsNotObserved(t *testing.T) {
	r := &scripted{opened: func(_ backend.Activation, h backend.Host) {
		params := backend.Raw(`{"command":"rm","args":["x"]}`)
		_, err := h.Call(context.Background(), "terminal/create", params)()
		assert.ErrorContains(t, err, "denies it")
	}}
	c := start(t, acp.Options{Backend: using(r),
		Permissions: func(workspace.Dir) *acp.Permissions {
			return &acp.Permissions{Deny: []string{"run rm ..."}}
		},
		Observe: func(e acp.Event) {
			_, answered := e.(acp.AnswerEvent)
			assert.False(t, answered)
		}})
	c.open(folder(t))
}
