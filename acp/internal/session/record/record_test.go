package record_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// store is a store that only appends.
type store struct {
	sessionstore.Store
	append func([]sessionstore.Update) error
}

func (s store) Append(
	_ context.Context, _ sessionstore.Lease, segment []sessionstore.Update,
) error {
	return s.append(segment)
}

// Once the store works again, what is added is stored again.
//
// Clause S4.
func TestRestart(t *testing.T) {
	full := errors.New("disk full")
	failing, failed := full, error(nil)
	var stored []string
	var warnings strings.Builder
	log := slog.New(slog.NewTextHandler(&warnings, nil))
	r := record.New(record.Options{
		Store: store{append: func(segment []sessionstore.Update) error {
			for _, u := range segment {
				if failing == nil {
					stored = append(stored, backend.ChunkText(u))
				}
			}
			return failing
		}},
		Failed: func(err error) {
			time.Sleep(10 * time.Millisecond)
			failed = err
		},
		Subagents: record.NewSubagentLimit(0, log), Tasks: tasks.NewGroup(log),
	})
	require.NoError(t, r.Add(t.Context(), backend.Text("lost")))
	require.ErrorIs(t, r.Flush(t.Context()), full)
	failing = nil
	r.Restart(t.Context())
	require.ErrorIs(t, failed, full, "it ends no turn that begins now")
	for range 2 {
		tooMuch := sessionstore.OfSubagent("sub-1", backend.Text("too much"))
		require.NoError(t, r.Add(t.Context(), tooMuch))
	}
	require.Equal(t, 1, strings.Count(warnings.String(), "the subagents of a session say too much"))
	require.NoError(t, r.Add(t.Context(), backend.Text("kept")))
	require.NoError(t, r.Close(t.Context()))
	require.Equal(t, []string{"kept"}, stored)
}
