package modelserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func start(t *testing.T) *modelserver.Server {
	t.Helper()
	s, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, s.Close())
	})
	return s
}

func TestConversationsThatDoNotMatch(t *testing.T) {
	chatCall := object{"role": "assistant", "tool_calls": []any{object{"id": "a",
		"function": object{"name": "read", "arguments": "{}"}}}}
	message := func(role string, blocks ...any) object {
		return object{"role": role, "content": blocks}
	}
	use, result := object{"type": "tool_use", "id": "a", "name": "read",
		"input": object{}}, object{"type": "tool_result", "tool_use_id": "a", "content": "x"}
	text := object{"type": "text", "text": "x"}
	for _, c := range []struct {
		path, want string
		messages   []any
	}{
		{"/v1/chat/completions", "no results follow", []any{chatCall}},
		{"/v1/chat/completions", "no results follow",
			[]any{chatCall, object{"role": "user", "content": "x"}}},
		{"/v1/chat/completions", "does not follow",
			[]any{chatCall, object{"role": "tool", "tool_call_id": "b", "content": "x"}}},
		{"/v1/messages", "no results follow", []any{message("assistant", use)}},
		{"/v1/messages", "no results follow", []any{message("assistant", use),
			message("user", text, result)}},
		{"/v1/messages", "does not follow", []any{message("user", result)}},
		{"/v1/messages", "non-empty", []any{message("user", object{"type": "text", "text": ""})}},
		{"/v1/messages", "invalid signature",
			[]any{message("assistant", object{"type": "thinking", "thinking": "Hmm.",
				"signature": "x"})}},
	} {
		body, err := json.Marshal(object{"model": "m", "max_tokens": 100, "messages": c.messages})
		require.NoError(t, err)
		answer, err := http.Post(start(t).URL()+c.path, "application/json",
			strings.NewReader(string(body)))
		require.NoError(t, err)
		read, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		require.Contains(t, string(read), c.want)
	}
}

func TestProxyRejectsOtherHosts(t *testing.T) {
	s := start(t)
	address, err := url.Parse(s.URL())
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address),
		DisableKeepAlives: true}}
	_, err = client.Get("https://example.test/secure")
	require.Error(t, err)
	answer, err := client.Get("http://example.test/plain")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Equal(t, []string{"CONNECT example.test:443", "GET example.test"}, s.Unknown())
}
