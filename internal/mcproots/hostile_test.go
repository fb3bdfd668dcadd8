package mcproots_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// resultAsking has a server answer a call by a result that asks for the roots so many times.
func resultAsking(t *testing.T, p *peer, times int) <-chan error {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
		failed <- err
	}()
	var m struct{ ID int }
	require.NoError(t, json.Unmarshal([]byte(p.read()), &m))
	var all []string
	for i := range times {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list","params":{}}`, i))
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","content":[],"inputRequests":{%s}}}`, m.ID, strings.Join(all, ",")))
	return failed
}

func TestHostileAResultThatAsksVeryOften(t *testing.T) {
	taken := 0
	p := newPeer(t, mcproots.Options{MaxQuestions: 5, Roots: func(context.Context) (mcproots.Snapshot, error) {
		taken++
		return mcproots.Snapshot{}, nil
	}})
	var many *mcproots.QuestionsError
	require.ErrorAs(t, <-resultAsking(t, p, 6), &many)
	require.Equal(t, mcproots.QuestionsError{Questions: 6, Limit: 5}, *many)
	require.Zero(t, taken)
	failed := resultAsking(t, p, 5)
	again := p.read()
	require.Equal(t, 5, strings.Count(again, `{"roots":[]}`))
	require.Equal(t, 1, taken, "one list answers all")
	var m struct{ ID int }
	require.NoError(t, json.Unmarshal([]byte(again), &m))
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID))
	require.NoError(t, <-failed)
}
