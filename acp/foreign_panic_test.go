package acp_test

import (
	"context"
	"iter"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// startled is a runtime that panics when it is asked for its own sessions.
type startled struct{ knowing }

func (s *startled) Sessions(context.Context, *workspace.Dir) iter.Seq2[backend.ForeignSession, error] {
	return func(func(backend.ForeignSession, error) bool) { panic("in Sessions") }
}

// The sessions that are stored are listed all the same.
func TestW8_A31_APanicInAListOfTheAgentsOwnEndsNothing(t *testing.T) {
	log := &logtest.Text{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return &startled{} }, Logger: log.Logger(slog.LevelWarn)}.With(acp.Tuning{ImportEvery: 1}))
	c.initialize()
	id := c.open(folder(t))
	for range 3 {
		require.Equal(t, id, c.find(id).SessionID)
	}
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	c.leave()
	require.Equal(t, 3, log.Count("listing sessions"))
}
