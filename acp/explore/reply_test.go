package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

func many(n int) fileTree {
	files := fileTree{}
	for i := range n {
		files[fmt.Sprintf("%02d/%03d.txt", i%10, i)] = "needle\nhay\nneedle\n"
	}
	return files
}

// Some clients show each chunk as a document.
func TestEachChunkIsWholeMarkdown(t *testing.T) {
	files := many(20)
	files["long.md"] = strings.Repeat("needle in a long line\n```\n", 100)
	cwd, other := plant(t, files), plant(t, fileTree{"last.txt": "needle\n"})
	questions := []string{"needle", "/search needle", "/find *", "/find last.txt", "/read long.md",
		"/skills", "/help"}
	c := open(t, cwd, other)
	for _, question := range questions {
		for _, u := range c.ask(question).updates {
			if u.Kind == "agent_message_chunk" {
				requireClosedFences(t, u.text())
			}
		}
	}
}

// requireClosedFences fails the test if a code block does not begin and end in the text.
func requireClosedFences(t *testing.T, markdown string) {
	t.Helper()
	fence := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		marks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(marks) >= 3:
			fence = marks
		case fence != "" && line == marks && len(marks) >= len(fence):
			fence = ""
		}
	}
	require.Empty(t, fence, markdown)
}

// Clause W6.
func TestCancelledTurn(t *testing.T) {
	cwd := plant(t, many(300))
	for _, question := range []string{"needle", "/search needle", "/find *.txt", "/read 00/000.txt",
		"/search nothing"} {
		for _, kind := range []string{"tool_call", "agent_message_chunk", "tool_call_update"} {
			t.Run(question+" at "+kind, func(t *testing.T) {
				c := open(t, cwd)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c.client.onUpdate = func(u update) error {
					if u.Kind == kind {
						cancel(backend.ErrCancelled)
					}
					return nil
				}
				a := c.prompt(ctx, blocks(question))
				require.Equal(t, "cancelled", a.stop)
				require.Equal(t, kind, a.updates[len(a.updates)-1].Kind, "nothing is sent after it")
			})
		}
	}
}

// Clause W6.
func TestTurnCancelledBeforehand(t *testing.T) {
	c := open(t, plant(t, many(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, question := range []string{"needle", "/search needle", "/find *", "/read 00/000.txt",
		"/roots", "/help", "/skills", "/instructions", "/call a.b"} {
		a := c.prompt(ctx, blocks(question))
		require.Equal(t, "cancelled", a.stop)
		require.Empty(t, a.updates)
	}
}

// What the client does not take is the turn's end, and no worker stays behind.
func TestFailedUpdate(t *testing.T) {
	c := open(t, plant(t, many(300)))
	broken := errors.New("broken")
	c.client.onUpdate = func(u update) error {
		if u.Kind == "agent_message_chunk" {
			return broken
		}
		return nil
	}
	for _, question := range []string{"needle", "/search needle", "/find *", "/help"} {
		params, err := json.Marshal(map[string]any{"prompt": blocks(question)})
		require.NoError(t, err)
		_, err = c.session.Prompt(t.Context(), params, c.client)()
		require.ErrorIs(t, err, broken)
	}
}

func TestToolCallIDs(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "x\n"})
	seen := make(map[string]bool)
	for range 3 { // as after restarts
		id := open(t, cwd).ask("x").call(t).ID
		require.False(t, seen[id])
		seen[id] = true
	}
}
