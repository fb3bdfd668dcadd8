package explore

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
)

// question is a session/request_permission as a client reads it.
type question struct {
	ToolCall update
	Options  []map[string]string
}

// Call implements [backend.Client].
func (c *client) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return func() (backend.Raw, error) {
		var q question
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.asked = append(c.asked, q)
		c.mu.Unlock()
		if method != "session/request_permission" || c.onAsk == nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "there is no %s", method)
		}
		return c.onAsk(ctx, q)
	}
}

func selected(option string) func(context.Context, question) (backend.Raw, error) {
	return func(context.Context, question) (backend.Raw, error) {
		return backend.Raw(`{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`), nil
	}
}

// after does something between the question and the answer, which allows.
func after(t *testing.T, do func()) func(context.Context, question) (backend.Raw, error) {
	return func(ctx context.Context, q question) (backend.Raw, error) {
		do()
		return selected(q.Options[0]["optionId"])(ctx, q)
	}
}

// shown is a diff as a client reads it.
type shown struct {
	Type, Path string
	OldText    *string
	NewText    string
}

func (u update) diffs(t testing.TB) []shown {
	t.Helper()
	var all []shown
	require.NoError(t, json.Unmarshal(u.Content, &all))
	return all
}

// statuses are those of the tool calls, in order.
func (a answer) statuses() (all []toolStatus) {
	for _, u := range a.updates {
		if u.Status != "" {
			all = append(all, u.Status)
		}
	}
	return all
}

// last is the last update of a tool call.
func (a answer) last(t testing.TB) update {
	t.Helper()
	for i := len(a.updates) - 1; i >= 0; i-- {
		if a.updates[i].Status != "" {
			return a.updates[i]
		}
	}
	require.FailNow(t, "no tool call")
	return update{}
}

// files are the files below dir with their content.
func files(t testing.TB, dir string) fileTree {
	t.Helper()
	return dirtest.Planted(t, dir)
}

func raw(result string) func(context.Context, question) (backend.Raw, error) {
	return func(context.Context, question) (backend.Raw, error) { return backend.Raw(result), nil }
}
