package acp_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause N4.
func TestObserveIsToldWhatHappens(t *testing.T) {
	var mu sync.Mutex
	var events []acp.Event
	c := connect(t, acp.Options{Observe: func(e acp.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}})
	c.initialize()
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
