package interop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/interop/program"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// The SDK's client keeps a thousand and twenty-four notifications that its handler has not seen, then closes the
// connection. It reads faster than it handles: chunks are joined before they are shown, and what cannot be joined is paced.
func TestA27_ALongLoadDoesNotOverflowTheGoSDKsClientHoweverItIsStored(t *testing.T) {
	const updates = 100_000
	client, err := pipes.Build(t.Context(), t.TempDir(), "github.com/acp-agent/acp-agent/interop/gosdk")
	require.NoError(t, err)
	for name, messages := range map[string]int{
		"A27/a hundred thousand chunks of one message, stored one by one": 1,
		"A27/a hundred thousand messages":                                 updates,
	} {
		t.Run(name, func(t *testing.T) {
			state, cwd := filepath.Join(t.TempDir(), "state"), folder(t)
			words := sha256.New()
			history := make([]sessionstore.Update, updates)
			for i := range history {
				text := fmt.Sprintf("update %d of many\n", i)
				words.Write([]byte(text))
				history[i] = fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","messageId":"m%d","content":{"type":"text","text":%q}}}`, i%messages, text)
			}
			store(t, state, cwd, history)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // it takes its time
			defer cancel()
			out, err := exec.CommandContext(ctx, client, state, "long", cwd, program.Path()).Output()
			if exit, ok := err.(*exec.ExitError); ok {
				require.Fail(t, "the client failed", "%s", exit.Stderr)
			}
			require.NoError(t, err)
			var shown struct {
				Updates int
				Text    string
			}
			require.NoError(t, json.Unmarshal(out, &shown))
			require.Equal(t, fmt.Sprintf("%x", words.Sum(nil)), shown.Text, "the conversation is another")
			if messages == updates {
				require.GreaterOrEqual(t, shown.Updates, updates)
			} else {
				require.Less(t, shown.Updates, 1024)
			}
		})
	}
}

// store keeps a session with a history of one turn, as it is: nothing is joined.
func store(t *testing.T, state, cwd string, history []sessionstore.Update) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: state})
	roots, err := workspace.NewRoots(cwd, nil)
	require.NoError(t, err)
	lease, err := s.Create(t.Context(), sessionstore.NewSession{
		ID: "long", Agent: sessionstore.Agent{Kind: "explore"}, Title: "long",
		Keys: sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}},
	})
	require.NoError(t, err)
	require.NoError(t, s.BeginTurn(t.Context(), lease, sessionstore.Turn{}))
	for segment := range slices.Chunk(history, 500) {
		require.NoError(t, s.Append(t.Context(), lease, segment))
	}
	require.NoError(t, s.EndTurn(t.Context(), lease, "end_turn"))
	require.NoError(t, s.Close())
}
