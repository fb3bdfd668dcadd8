package proxy_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
)

func newRequest(params string) []string {
	return []string{`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` + params + `}`}
}

func TestP2_AChildThatKnowsRootsIsSentEachOnce(t *testing.T) {
	b := initialized(t, capable+opened, proxy.Options{})
	b.openWith(`{"x":1.0,"cwd":"/a","additionalDirectories":["/b","/a/","/b/.","/c"],"mcpServers":[{"n":1.0}],"_meta":{"n":1e5}}`)
	require.Equal(t, newRequest(`{"x":1.0,"cwd":"/a","additionalDirectories":["/b","/c"],"mcpServers":[{"n":1.0}],"_meta":{"n":1e5}}`),
		b.received("session/new"))
}

func TestP6_ARequestWithoutRootsPassesAsItIs(t *testing.T) {
	for _, capabilities := range []string{plain, capable} {
		b := initialized(t, capabilities+opened, proxy.Options{})
		b.openWith(`{"cwd":"/a/./b/","mcpServers":[]}`)
		require.Equal(t, newRequest(`{"cwd":"/a/./b/","mcpServers":[]}`), b.received("session/new"))
	}
}

func TestP1_AChildThatKnowsNoRootsIsToldInItsFirstPrompt(t *testing.T) {
	var log logtest.Text
	b := initialized(t, plain+opened+"await session/prompt\n"+answered+"await session/prompt\n"+answered,
		proxy.Options{Logger: log.Logger(slog.LevelInfo)})
	s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":["/b","/b","/c d"],"mcpServers":[]}`)
	require.Contains(t, log.String(), "does not support additional directories")
	require.Contains(t, log.String(), "/b /c d")
	for range 2 {
		_, err := b.prompt(s)
		require.NoError(t, err)
	}
	got := b.received("session/new", "session/prompt")
	require.Equal(t, newRequest(`{"cwd":"/a","mcpServers":[]}`)[0], got[0])

	var first struct {
		Params struct {
			Prompt []struct{ Type, Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got[1]), &first))
	require.Len(t, first.Params.Prompt, 2)
	context := first.Params.Prompt[0]
	require.Equal(t, "text", context.Type)
	require.True(t, strings.HasPrefix(context.Text, "<acp-agent-context>\n") && strings.HasSuffix(context.Text, "\n</acp-agent-context>"))
	require.Contains(t, context.Text, "1. \"/a\" (the working directory)\n2. \"/b\"\n3. \"/c d\"\n")
	require.Equal(t, "hello", first.Params.Prompt[1].Text)
	require.Contains(t, got[2], `"prompt":[{"type":"text","text":"hello"}]`, "the second prompt is as it was sent")
}

func TestP7_TheContextIsBounded(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+answered, proxy.Options{})
	var roots []string
	for i := range 63 {
		roots = append(roots, fmt.Sprintf(`"/%d/%s"`, i, strings.Repeat("long", 250)))
	}
	s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":[` + strings.Join(roots, ",") + `],"mcpServers":[]}`)
	_, err := b.prompt(s)
	require.NoError(t, err)
	prompt := b.received("session/prompt")[0]
	require.Less(t, len(prompt), 20_000)
	require.Contains(t, prompt, "and 47 more")
}

func TestP1_APromptWithoutContentIsStillToldOfTheRoots(t *testing.T) {
	for prompt, want := range map[string]string{
		`{"prompt":[ ]}`:   `</acp-agent-context>","type":"text"} ]`,
		`{"prompt":"odd"}`: `"prompt":"odd"`,
		`{}`:               `"params":{"sessionId":"child-1"}`,
	} {
		b := initialized(t, plain+opened+"await session/prompt\n"+answered, proxy.Options{})
		s, _ := b.openWith(`{"cwd":"/a","additionalDirectories":["/b"]}`)
		_, err := await(t, s.Prompt(t.Context(), backend.Raw(prompt), turn{b.editor}))
		require.NoError(t, err)
		got := strings.ReplaceAll(b.received("session/prompt")[0], `\u003c`, "<")
		require.Contains(t, strings.ReplaceAll(got, `\u003e`, ">"), want)
	}
}

func TestA31_AnAgentIsNamedByItsCommand(t *testing.T) {
	for _, c := range []struct {
		path             string
		args             []string
		profile, command string
	}{
		{"opencode", []string{"acp"}, "opencode acp", "acp-agent -- opencode acp"},
		{"/usr/local/bin/opencode", []string{"acp"}, "opencode acp", "acp-agent -- /usr/local/bin/opencode acp"},
		{"npx", []string{"@scope/agent", "--model", "a b"}, "npx @scope/agent --model 'a b'", "acp-agent -- npx @scope/agent --model 'a b'"},
		{"/opt/my agents/it's.EXE", []string{""}, `'it'\''s' ''`, `acp-agent -- '/opt/my agents/it'\''s.EXE' ''`},
		{".cmd", nil, ".cmd", "acp-agent -- .cmd"},
	} {
		profile, line := proxy.Names(process.Command{Path: c.path, Args: c.args})
		require.Equal(t, c.profile, profile)
		require.Equal(t, c.command, line)
	}
}
