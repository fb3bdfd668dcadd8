package acp

import (
	"fmt"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
)

// Clause W8.
func TestOldToolCallsAreForgotten(t *testing.T) {
	s := &session{permits: new(permission.Permits), viewers: new(viewers)}
	for i := range 3 * maxToolCalls {
		s.noteToolCall(backend.NewUpdate(sdk.StartToolCall(sdk.ToolCallId(fmt.Sprint(i)), "T")))
	}
	require.Len(t, s.toolCalls, maxToolCalls)
	require.Contains(t, s.toolCalls, callKey{call: fmt.Sprint(3*maxToolCalls - 1)})
	require.LessOrEqual(t, cap(s.toolCallIDs), 3*maxToolCalls)
}
