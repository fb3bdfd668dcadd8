package calls_test

import (
	"fmt"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/calls"
)

// Clause W8.
func TestOldCallsAreForgotten(t *testing.T) {
	var all calls.Calls
	known := 0
	for i := range 3_000 {
		all.Note(calls.Parse(backend.NewUpdate(sdk.StartToolCall(sdk.ToolCallId(fmt.Sprint(i)), "T"))))
	}
	for i := range 3_000 {
		if _, ok := all.Get(calls.Key{ID: fmt.Sprint(i)}); ok {
			known++
		}
	}
	require.Equal(t, 1_000, known)
	_, ok := all.Get(calls.Key{ID: "2999"})
	require.True(t, ok)
}

// What an agent announces counts as the client reads it, which takes the names as they are spelled.
//
// Clause R2.
func TestNamesCountAsSpelled(t *testing.T) {
	u, err := backend.ParseUpdate(backend.Raw(`{"update":{"sessionUpdate":"tool_call","toolCallId":"1",` +
		`"title":"T","kind":"execute","Kind":"read","rawInput":{"command":"make"},"RAWINPUT":{}}}`))
	require.NoError(t, err)
	said := calls.Parse(u)
	require.Equal(t, "execute", said.Kind)
	var all calls.Calls
	all.Note(said)
	known, _ := all.Get(said.Key)
	require.JSONEq(t, `{"command":"make"}`, string(known.Announced().RawInput))
}
