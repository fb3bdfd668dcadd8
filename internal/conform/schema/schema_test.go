package schema_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func follow(t *testing.T, foreign bool) *schema.Conversation {
	t.Helper()
	c, err := schema.Follow(foreign)
	require.NoError(t, err)
	return c
}

// What is embedded is what npm serves, without descriptions.
func TestEmbeddedSchema(t *testing.T) {
	dir := npmtest.File(t, "testdata/node", "@agentclientprotocol/sdk")
	about, err := os.ReadFile(filepath.Join(dir, "package.json"))
	require.NoError(t, err)
	var sdk struct{ Version string }
	require.NoError(t, json.Unmarshal(about, &sdk))
	require.Equal(t, sdk.Version, schema.Version)
	for _, name := range []string{"schema.json", "schema.unstable.json"} {
		text, err := os.ReadFile(filepath.Join(dir, "schema", "v1", name))
		require.NoError(t, err)
		var document any
		require.NoError(t, json.Unmarshal(text, &document))
		want, err := json.Marshal(withoutDescriptions(document, false))
		require.NoError(t, err)
		if os.Getenv("ACP_AGENT_UPDATE") != "" {
			var compressed bytes.Buffer
			to, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
			require.NoError(t, err)
			_, err = to.Write(want)
			require.NoError(t, errors.Join(err, to.Close()))
			require.NoError(t, os.WriteFile(name+".gz", compressed.Bytes(), 0o644))
		}
		require.Equal(t, string(want), string(embedded(t, name)), name)
	}
}

// embedded returns the text of an embedded schema.
func embedded(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(name + ".gz")
	require.NoError(t, err)
	defer file.Close()
	from, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(from)
	require.NoError(t, err)
	return text
}

// withoutDescriptions returns a schema without the texts for people. The members of names are
// names, not words of JSON Schema.
func withoutDescriptions(v any, names bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if !names && slices.Contains([]string{"description", "title", "examples"}, name) {
				delete(v, name)
				continue
			}
			v[name] = withoutDescriptions(member, !names && (name == "properties" || name == "$defs"))
		}
	case []any:
		for i, element := range v {
			v[i] = withoutDescriptions(element, false)
		}
	}
	return v
}

// An agent of others may be lax where only we are strict, but not add members.
func TestForeign(t *testing.T) {
	const listed = `{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}`
	c := follow(t, true)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{}}`, listed, listed,
	} {
		c.Client(line)
	}
	err := c.Agent(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"_meta":{"x":1},` +
		`"agentCapabilities":{"sessionCapabilities":{"fork":{},"subagent":{}}}}}`)
	require.ErrorIs(t, err, schema.ErrUndefined)
	require.ErrorContains(t, err, "InitializeResponse has agentCapabilities.sessionCapabilities.subagent: ")
	require.NoError(t, c.Agent(`{"jsonrpc":"2.0","id":2,"result":null}`))
	require.NoError(t, c.Agent(`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"a\nb"}}`))
	require.ErrorContains(t, c.Agent(`{"jsonrpc":"2.0","id":3,"result":{"sessions":[{"sessionId":1}]}}`), "SessionId")
}

const (
	newRequest = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/x","mcpServers":[]}}`
	forked     = `{"jsonrpc":"2.0","id":"f","method":"session/fork","params":{}}`
	listed     = `{"jsonrpc":"2.0","id":-5,"method":"session/list","params":{}}`
	chunk      = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}`
)

// Clause W1.
func TestValidConversation(t *testing.T) {
	c := follow(t, false)
	for _, line := range []string{newRequest, forked, listed, "not JSON"} {
		c.Client(line)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":-5,"result":{"sessions":[{"sessionId":"s","cwd":"/x","additionalDirectories":[]}]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`,
		`{"jsonrpc":"2.0","id":"f","result":{"sessionId":"s"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + chunk + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}`,
	} {
		require.NoError(t, c.Agent(line))
	}
	require.ErrorContains(t, c.Agent(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`), "no unanswered request")
}

// Clause W1.
func TestInvalidMessages(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"W1/text", `starting`, "not a JSON object"},
		{"W1/two messages", `{"jsonrpc":"2.0"}{}`, "not a JSON object"},
		{"W1/a batch", `[]`, "not a JSON object"},
		{"W1/UTF-8", "{\"\xff\":1}", "UTF-8"},
		{"W1/version", `{"id":1,"result":{"sessionId":"s"}}`, "JSON-RPC 2.0"},
		{"W1/envelope", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"},"extra":1}`, `unknown member "extra"`},
		{"W1/both", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"},"error":{}}`, "either"},
		{"W1/neither", `{"jsonrpc":"2.0","id":1}`, "either"},
		{"W1/no id", `{"jsonrpc":"2.0","result":{}}`, "no id"},
		{"W1/no request", `{"jsonrpc":"2.0","id":"1","result":{"sessionId":"s"}}`, "no unanswered request"},
		{"W1/a result without a request", `{"jsonrpc":"2.0","id":null,"result":{}}`, "id null"},
		{"W1/a wrong result", `{"jsonrpc":"2.0","id":1,"result":{}}`, "sessionId"},
		{"W1/unknown member of a result", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","cwd":"/x"}}`, "NewSessionResponse has cwd"},
		{"W1/a null list", `{"jsonrpc":"2.0","id":-5,"result":{"sessions":null}}`, "sessions"},
		{"W1/a code that is text", `{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"a"}}`, "ErrorCode"},
		{"W1/an unknown kind", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"x"}}}`, "update"},
		{"W1/an unknown notification", `{"jsonrpc":"2.0","method":"x/y","params":{}}`, "does not send x/y"},
		{"W1/an unknown request", `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{}}`, "does not send x/y"},
		{"W1/a client's request", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, "does not send session/new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conversation := follow(t, false)
			conversation.Client(newRequest)
			conversation.Client(listed)
			require.ErrorContains(t, conversation.Agent(c.line), c.want)
		})
	}
	t.Run("W1/two answers", func(t *testing.T) {
		conversation := follow(t, false)
		conversation.Client(newRequest)
		const answer = `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`
		require.NoError(t, conversation.Agent(answer))
		require.ErrorContains(t, conversation.Agent(answer), "no unanswered request")
	})
}

// Clause W1.
func TestRelayed(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}}`,
		`{"jsonrpc":"2.0","method":"_own/method","params":{"x":1}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"of":"its own"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"sessionId":"s","models":{}}}`,
	} {
		own, relayed := follow(t, false), follow(t, true)
		for _, request := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"_own","params":{}}`,
			`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{}}`,
		} {
			own.Client(request)
			relayed.Client(request)
		}
		require.Error(t, own.Agent(line))
		require.NoError(t, relayed.Agent(line))
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","anything":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"usage":{}}}`,
		`{"jsonrpc":"2.0","method":"own/method","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`,
	} {
		c := follow(t, true)
		c.Client(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`)
		require.Error(t, c.Agent(line), line)
	}
}
