package conform_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// edit connects an editor that answers requests with answer.
func edit(t *testing.T, answer func(m rawrpc.Message) string) *rawrpc.Conn {
	t.Helper()
	in, editorOut := io.Pipe()
	editorIn, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		_, err := conform.ServeClient(context.Background(), in, out, "1", conform.Report.Markdown)
		_ = out.Close()
		served <- err
	}()
	c := rawrpc.New(editorIn, editorOut, 0)
	go func() {
		_ = c.Each(context.Background(), func(m rawrpc.Message) error {
			if m.Method == "" || m.ID == nil {
				return nil
			}
			return c.Send(answer(m))
		})
	}()
	t.Cleanup(func() {
		require.NoError(t, editorOut.Close())
		require.NoError(t, <-served)
		<-c.Done()
	})
	return c
}

// say sends a prompt and returns the report.
func say(t *testing.T, c *rawrpc.Conn, session, text string) string {
	t.Helper()
	from := c.Count()
	m, err := c.Call(t.Context(), "session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}})
	require.NoError(t, err)
	require.Nil(t, m.Error)
	var all strings.Builder
	for _, m := range c.Messages()[from:] {
		all.Write(m.Params)
	}
	return all.String()
}

func open(t *testing.T, c *rawrpc.Conn, cwd string, more ...string) string {
	t.Helper()
	var made struct{ SessionID string }
	m, err := c.Call(t.Context(), "session/new", map[string]any{
		"cwd": cwd, "additionalDirectories": more, "mcpServers": []any{}})
	require.NoError(t, err)
	require.NoError(t, m.Decode(&made))
	return made.SessionID
}

func TestGoodEditor(t *testing.T) {
	c := edit(t, func(m rawrpc.Message) string {
		if m.Method == "session/request_permission" {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, m.ID)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
	})
	_, err := c.Call(t.Context(), "initialize", map[string]any{"protocolVersion": 1})
	require.NoError(t, err)
	id := open(t, c, "/a")
	first := say(t, c, id, "hello")
	require.Contains(t, first, "Open a second folder")
	require.NotContains(t, first, "any message")
	require.Contains(t, first, "– P1.folders")
	two := open(t, c, "/a", "/b")
	_, err = c.Call(t.Context(), "session/load", map[string]any{"sessionId": two, "cwd": "/a", "additionalDirectories": []string{"/b"}})
	require.NoError(t, err)
	say(t, c, two, "ask")
	last := say(t, c, two, "hello")
	require.NotContains(t, last, "✗")
	require.NotContains(t, last, "–")
	require.NotContains(t, last, "Next:")
}

func TestBadEditor(t *testing.T) {
	c := edit(t, func(m rawrpc.Message) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	})
	_, err := c.Call(t.Context(), "initialize", map[string]any{"protocolVersion": 2})
	require.NoError(t, err)
	id := open(t, c, "a", "/b", "/b")
	_, err = c.Call(t.Context(), "session/load", map[string]any{"sessionId": id, "cwd": "a"})
	require.NoError(t, err)
	say(t, c, id, "ask")
	report := say(t, c, id, "hello")
	for _, check := range []string{"W10.client", "P2.absolute", "P2.unique", "P3.load", "W4.client", "W6.client"} {
		require.Contains(t, report, "✗ "+check)
	}
}
