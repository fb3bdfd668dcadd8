package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// lines is what a client received, in the order of the wire.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) tap(d jsonrpc.Direction, line []byte) {
	if d != jsonrpc.Received {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
}

// order is the order in which the first lines with these texts came.
func (l *lines) order(texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.all {
		for _, text := range texts {
			if strings.Contains(line, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

const patient = "await _x/end\n" + `send {"jsonrpc":"2.0","id":$_x/end$,"result":{}}` + "\n"

// A child writes its answer and what follows it at once; what it writes is never reordered.
func TestP6_WhatFollowsAnAnswerFollowsItForTheClient(t *testing.T) {
	const turns = 50
	var script strings.Builder
	script.WriteString(plain + opened)
	for i := range turns {
		fmt.Fprintf(&script, "await session/prompt\nsend "+update, fmt.Sprintf(`{"sessionUpdate":"_before %d."}`, i))
		fmt.Fprintf(&script, `both {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"end_turn","_meta":{"turn":"%d."}}} %s`, i,
			fmt.Sprintf(update, fmt.Sprintf(`{"sessionUpdate":"_behind %d."}`, i)))
	}
	script.WriteString("await session/set_mode\n" + `both {"jsonrpc":"2.0","id":$session/set_mode$,"result":{"_meta":{"mode":"set"}}} ` +
		fmt.Sprintf(update, `{"sessionUpdate":"_behind mode"}`))
	script.WriteString("await authenticate\n" + `both {"jsonrpc":"2.0","id":$authenticate$,"result":{"_meta":{"login":"done"}}} ` +
		`{"jsonrpc":"2.0","method":"_x/behind login"}` + "\n" + patient)
	c, _ := command(t, script.String())
	var got lines
	cl := through(t, c, sessionstore.NewMemory(), client.Options{Wire: jsonrpc.Options{Tap: got.tap}})
	s, err := cl.NewSession(t.Context(), client.Setup{Roots: oneRoot(t)})
	require.NoError(t, err)
	id := `{"sessionId":"` + s.ID + `",`
	for range turns {
		_, err := cl.Conn().Call(t.Context(), "session/prompt", json.RawMessage(id+`"prompt":[]}`))()
		require.NoError(t, err)
	}
	_, err = cl.Conn().Call(t.Context(), "session/set_mode", json.RawMessage(id+`"modeId":"m"}`))()
	require.NoError(t, err)
	require.NoError(t, cl.Authenticate(t.Context(), "key"))
	_, err = cl.Conn().Call(t.Context(), "_x/end", json.RawMessage(id+`"x":1}`))()
	require.NoError(t, err)
	for i := range turns {
		want := []string{fmt.Sprintf(`"_before %d."`, i), fmt.Sprintf(`"turn":"%d."`, i), fmt.Sprintf(`"_behind %d."`, i)}
		require.Equal(t, want, got.order(want...))
	}
	for _, want := range [][]string{{`"mode":"set"`, `"_behind mode"`}, {`"login":"done"`, `"_x/behind login"`}} {
		require.Equal(t, want, got.order(want...))
	}
}

func TestP6_WhatFollowsACancelledTurnFollowsItsAnswer(t *testing.T) {
	const turns = 20
	var script strings.Builder
	script.WriteString(plain + opened)
	for i := range turns {
		fmt.Fprintf(&script, "await session/prompt\nsend "+update+"await session/cancel\n", fmt.Sprintf(`{"sessionUpdate":"_before %d."}`, i))
		fmt.Fprintf(&script, `both {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"cancelled","_meta":{"turn":"%d."}}} %s`, i,
			fmt.Sprintf(update, fmt.Sprintf(`{"sessionUpdate":"_behind %d."}`, i)))
	}
	script.WriteString(patient)
	c, _ := command(t, script.String())
	var got lines
	cl := through(t, c, sessionstore.NewMemory(), client.Options{Wire: jsonrpc.Options{Tap: got.tap}})
	s, err := cl.NewSession(t.Context(), client.Setup{Roots: oneRoot(t)})
	require.NoError(t, err)
	id := `{"sessionId":"` + s.ID + `",`
	for i := range turns {
		work := cl.Conn().Call(t.Context(), "session/prompt", json.RawMessage(id+`"prompt":[]}`))
		require.Eventually(t, func() bool { return len(got.order(fmt.Sprintf(`"_before %d."`, i))) == 1 }, patience, 1e6)
		require.NoError(t, cl.Cancel(t.Context(), s.ID))
		_, err := work()
		require.NoError(t, err)
	}
	_, err = cl.Conn().Call(t.Context(), "_x/end", json.RawMessage(id+`"x":1}`))()
	require.NoError(t, err)
	for i := range turns {
		want := []string{fmt.Sprintf(`"_before %d."`, i), fmt.Sprintf(`"turn":"%d."`, i), fmt.Sprintf(`"_behind %d."`, i)}
		require.Equal(t, want, got.order(want...))
	}
}
