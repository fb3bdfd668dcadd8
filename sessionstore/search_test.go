package sessionstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// A tool call is found by the name of its tool too, which only its first update may have.
//
// Clause A37.
func TestPassagesOfToolCalls(t *testing.T) {
	var p sessionstore.Passages
	for _, raw := range []string{
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit","name":"str_replace"}}`,
		`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Edit a.go"}}`,
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"2","title":"Run grep x","name":"Grep"}}`,
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"3","title":"","name":"bash"}}`,
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"4","title":"List","name":null}}`,
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"5","title":"Read","name":7}}`,
	} {
		p.Add(1, parse(raw))
	}
	p.End()
	var texts []string
	for _, passage := range p.Done {
		require.Equal(t, sessionstore.RoleTool, passage.Role)
		texts = append(texts, passage.Text)
	}
	require.Equal(t, []string{"Edit a.go (str_replace)", "Run grep x", "bash", "List", "Read"},
		texts)
}

// All passages of an update are stored in one transaction.
//
// Clause N6.
func TestPassagesOfALongUpdate(t *testing.T) {
	long := strings.Repeat("häufig ", 1<<20)
	var p sessionstore.Passages
	p.Add(1, parse(`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"`+long+`"}}}`))
	p.End()
	size := 0
	for _, passage := range p.Done {
		size += len(passage.Text)
		require.True(t, strings.HasSuffix(passage.Text, "häufig "))
	}
	require.InDelta(t, 256<<10, size, 10)
}
