package sessionstore_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause S12.
func TestTurnEnds(t *testing.T) {
	for want, end := range map[string]sessionstore.Update{
		"":                                  sessionstore.TurnEnded("end_turn", ""),
		"(The turn was cancelled.)":         sessionstore.TurnEnded("cancelled", ""),
		"(The turn was stopped: refusal)":   sessionstore.TurnEnded("refusal", ""),
		"(The turn failed: 429: slow down)": sessionstore.TurnEnded("", "429: slow down"),
	} {
		require.Equal(t, sessionstore.TurnEndUpdate, end.Kind)
		history, _ := sessionstore.Split([]sessionstore.Update{end})
		require.Len(t, history, 1, "it is stored")
		note, ok := end.EndNote()
		require.Equal(t, want != "", ok)
		if ok {
			require.Contains(t, note.String(), want)
			require.Contains(t, note.String(), `"note":true`)
		}
		all := func(yield func(sessionstore.Update, error) bool) { yield(end, nil) }
		for u := range sessionstore.Joined(all) {
			needs, known := u.Kind.Needs()
			require.True(t, known)
			require.NotEmpty(t, needs, "most clients are not sent it")
		}
		require.Empty(t, slices.Collect(func(yield func(sessionstore.Update) bool) {
			for u := range sessionstore.WithoutEnds(all) {
				yield(u)
			}
		}), "nor are backends")
	}
}
