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

func TestAnswersAreTruncated(t *testing.T) {
	cwd := plant(t, many(50))
	for _, question := range []string{"needle", "/search needle", "/find *.txt"} {
		t.Run(question, func(t *testing.T) {
			a := open(t, limits{hits: 7}, cwd).ask(question)
			require.Len(t, a.lines(), 7)
			require.Len(t, a.call(t).Places, 7)
			require.Regexp(t, "Only the first 7 (lines|files) are shown.", a.text())
			require.Contains(t, a.call(t).text(), "Only the first 7 ")

			a = open(t, limits{bytes: 300}, cwd).ask(question)
			require.LessOrEqual(t, len(strings.Join(a.lines(), "\n"))+1, 300)
			require.NotEmpty(t, a.lines())
			require.Contains(t, a.text(), "because an answer is limited to 300 bytes")

			a = open(t, limits{files: 5}, cwd).ask(question)
			require.Contains(t, a.text(),
				"among the first 5 files. Only the first 5 files of a folder are searched")
		})
	}
}

func TestAnswerThatFits(t *testing.T) {
	cwd := plant(t, many(5))
	a := open(t, limits{hits: 10, files: 5}, cwd).ask("/search needle")
	require.Len(t, a.lines(), 10)
	require.NotContains(t, a.text(), "are shown")
	require.NotContains(t, a.text(), "Only the first")
}

func TestTextIsStreamed(t *testing.T) {
	c := open(t, limits{delay: -1}, plant(t, many(80)))
	for _, question := range []string{"/search needle", "/find *.txt"} {
		var order []string
		for _, u := range c.ask(question).updates {
			order = append(order, u.Kind)
		}
		require.Equal(t, "tool_call", order[0])
		require.Equal(t, "agent_message_chunk", order[1])
		require.Equal(t, []string{"tool_call_update", "agent_message_chunk"}, order[len(order)-2:])
		require.Greater(t, len(order), 5)
	}
}

// Some clients show each chunk as a document.
func TestEachChunkIsWholeMarkdown(t *testing.T) {
	files := many(20)
	files["long.md"] = strings.Repeat("needle in a long line\n```\n", 100)
	cwd, other := plant(t, files), plant(t, fileTree{"last.txt": "needle\n"})
	questions := []string{"needle", "/search needle", "/find *", "/find last.txt", "/read long.md",
		"/skills", "/mcp", "/help"}
	for name, l := range map[string]limits{
		"at once": {delay: -1}, "later": {}, "with progress": {progress: -1}, "full": {hits: 30},
	} {
		for _, question := range questions {
			t.Run(name+"/"+question, func(t *testing.T) {
				a := open(t, l, cwd, other).ask(question)
				for _, u := range a.updates {
					if u.Kind == "agent_message_chunk" {
						requireClosedFences(t, u.text())
					}
				}
			})
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
				c := open(t, limits{}, cwd)
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
	c := open(t, limits{}, plant(t, many(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, question := range []string{"needle", "/search needle", "/find *", "/read 00/000.txt",
		"/roots", "/help", "/skills", "/instructions", "/mcp", "/mcp tools", "/call a.b"} {
		a := c.prompt(ctx, blocks(question))
		require.Equal(t, "cancelled", a.stop)
		require.Empty(t, a.updates)
	}
}

// What the client does not take is the turn's end, and no worker stays behind.
func TestFailedUpdate(t *testing.T) {
	c := open(t, limits{}, plant(t, many(300)))
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
		id := open(t, limits{}, cwd).ask("x").call(t).ID
		require.False(t, seen[id])
		seen[id] = true
	}
}
