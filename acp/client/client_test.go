package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func TestInitialize(t *testing.T) {
	for name, c := range map[string]struct {
		options client.Options
		want    string
	}{
		"nothing": {client.Options{},
			`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,` +
				`"writeTextFile":false}},"clientInfo":{"name":"acp-agent","version":"0"}}`},
		"files and more": {client.Options{
			Name: "bench", Version: "2",
			Capabilities: json.RawMessage(`{"_x":1.0}`),
			ReadTextFile: func(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse,
				error) {
				return sdk.ReadTextFileResponse{}, nil
			},
		}, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,` +
			`"writeTextFile":false},"_x":1.0},"clientInfo":{"name":"bench","version":"2"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			cl, a := connect(t, full, c.options)
			got, err := cl.Initialize(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"initialize " + c.want}, a.take())
			require.Equal(t, full, string(got.Raw))
		})
	}
}

func TestParseAgent(t *testing.T) {
	got, err := client.ParseAgent(json.RawMessage(full))
	require.NoError(t, err)
	require.Equal(t, client.Agent{
		Version: 1, Name: "Fake",
		Prompt: sdk.PromptCapabilities{Image: true}, MCP: sdk.McpCapabilities{Http: true},
		Load: true, Resume: true, Fork: true, List: true, Close: true, Delete: true,
		AdditionalDirectories: true,
		Raw:                   json.RawMessage(full),
	}, got)

	odd := `{"protocolVersion":1,"agentCapabilities":{"loadSession":"yes",` +
		`"sessionCapabilities":{"list":null,"fork":true,"close":[]}}}`
	got, err = client.ParseAgent(json.RawMessage(odd))
	require.NoError(t, err)
	require.Equal(t, client.Agent{Version: 1, Name: "the agent", Raw: json.RawMessage(odd)}, got)

	_, err = client.ParseAgent(json.RawMessage(`[]`))
	require.ErrorContains(t, err, "cannot read")
}

// Clause W10.
func TestOtherProtocolVersion(t *testing.T) {
	c, _ := connect(t, `{"protocolVersion":2}`, client.Options{})
	_, err := c.Initialize(t.Context())
	require.ErrorContains(t, err, "version 2")
}

func TestNotInitialized(t *testing.T) {
	c, a := connect(t, full, client.Options{})
	_, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a")})
	require.ErrorContains(t, err, "call Initialize first")
	_, err = c.Prompt(t.Context(), "s")
	require.ErrorContains(t, err, "call Initialize first")
	require.Empty(t, a.take())
}

func TestAgentError(t *testing.T) {
	c, _ := initialized(t, full, client.Options{})
	err := c.CloseSession(t.Context(), "s")
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jsonrpc.CodeMethodNotFound, refused.Code)
	require.ErrorContains(t, err, "session/close: ")
}

func TestAuthenticateAndDelete(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answer("authenticate", `{}`)
	a.answer("session/delete", `{}`)
	require.NoError(t, c.Authenticate(t.Context(), "key"))
	require.NoError(t, c.DeleteSession(t.Context(), "s"))
	require.Equal(t,
		[]string{`authenticate {"methodId":"key"}`, `session/delete {"sessionId":"s"}`}, a.take())
}

func TestContext(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	a.answerWith("session/new", func(string) (string, error) {
		cancel(errors.New("enough"))
		<-release
		return `{}`, nil
	})
	_, err := c.NewSession(ctx, client.Setup{Roots: roots(t, "/a")})
	require.ErrorContains(t, err, "enough")
	close(release)
}
