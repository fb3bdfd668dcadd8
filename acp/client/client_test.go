package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestInitialize(t *testing.T) {
	for name, c := range map[string]struct {
		options client.Options
		want    string
	}{
		"nothing": {client.Options{},
			`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false}},"clientInfo":{"name":"acp-agent","version":"0"}}`},
		"files and more": {client.Options{
			Name: "bench", Version: "2",
			Capabilities: json.RawMessage(`{"_x":1.0}`),
			ReadTextFile: func(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
				return sdk.ReadTextFileResponse{}, nil
			},
		}, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"_x":1.0},"clientInfo":{"name":"bench","version":"2"}}`},
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
		Load: true, Resume: true, Fork: true, List: true, Close: true, Delete: true, AdditionalDirectories: true,
		Raw: json.RawMessage(full),
	}, got)

	odd := `{"protocolVersion":1,"agentCapabilities":{"loadSession":"yes","sessionCapabilities":{"list":null,"fork":true,"close":[]}}}`
	got, err = client.ParseAgent(json.RawMessage(odd))
	require.NoError(t, err)
	require.Equal(t, client.Agent{Version: 1, Name: "the agent", Raw: json.RawMessage(odd)}, got)

	_, err = client.ParseAgent(json.RawMessage(`[]`))
	require.ErrorContains(t, err, "cannot read")
}

func TestW10_OtherProtocolVersion(t *testing.T) {
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

func TestP1_NotAdvertised(t *testing.T) {
	c, a := initialized(t, bare, client.Options{})
	ctx, two := t.Context(), client.Setup{Roots: roots(t, "/a", "/b")}
	for capability, ask := range map[string]func() error{
		"sessionCapabilities.additionalDirectories": func() error { _, err := c.NewSession(ctx, two); return err },
		"loadSession":                func() error { _, err := c.LoadSession(ctx, "s", two); return err },
		"sessionCapabilities.resume": func() error { _, err := c.ResumeSession(ctx, "s", two); return err },
		"sessionCapabilities.fork":   func() error { _, err := c.ForkSession(ctx, "s", two); return err },
		"sessionCapabilities.list":   func() error { _, err := c.ListSessions(ctx, client.Query{}); return err },
		"sessionCapabilities.close":  func() error { return c.CloseSession(ctx, "s") },
		"sessionCapabilities.delete": func() error { return c.DeleteSession(ctx, "s") },
	} {
		t.Run(capability, func(t *testing.T) {
			require.ErrorContains(t, ask(), "the agent does not support this: it does not advertise "+capability)
			require.Empty(t, a.take())
		})
	}
}

func TestP1_NoAdditionalDirectories(t *testing.T) {
	c, a := initialized(t, bare, client.Options{})
	a.answer("session/new", `{"sessionId":"s"}`)
	_, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a")})
	require.NoError(t, err)
	require.Equal(t, []string{`session/new {"cwd":"/a","mcpServers":[]}`}, a.take())
	_, err = c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a", "/b")})
	require.ErrorContains(t, err, "open the session on one directory")
}

func TestP2_RootsAreNormalized(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answer("session/new", `{"sessionId":"s","modes":1.0}`)
	s, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a/", "/b", "/a", "/b/.", "/c")})
	require.NoError(t, err)
	require.Equal(t, client.Session{ID: "s", Result: json.RawMessage(`{"sessionId":"s","modes":1.0}`)}, s)
	require.Equal(t, []string{`session/new {"cwd":"/a","additionalDirectories":["/b","/c"],"mcpServers":[]}`}, a.take())
}

func TestP3_FullListInEveryRequest(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	ctx := t.Context()
	for method, ask := range map[string]func(context.Context, string, client.Setup) (client.Session, error){
		"session/load": c.LoadSession, "session/resume": c.ResumeSession, "session/fork": c.ForkSession,
	} {
		t.Run(method, func(t *testing.T) {
			a.answer(method, `{}`)
			want := "s"
			if method == "session/fork" {
				a.answer(method, `{"sessionId":"new"}`)
				want = "new"
			}
			s, err := ask(ctx, "s", client.Setup{Roots: roots(t, "/a"), Meta: json.RawMessage(`{"k":1}`)})
			require.NoError(t, err)
			require.Equal(t, want, s.ID)
			_, err = ask(ctx, "s", client.Setup{Roots: roots(t, "/a", "/b")})
			require.NoError(t, err)
			require.Equal(t, []string{
				method + ` {"sessionId":"s","cwd":"/a","additionalDirectories":[],"mcpServers":[],"_meta":{"k":1}}`,
				method + ` {"sessionId":"s","cwd":"/a","additionalDirectories":["/b"],"mcpServers":[]}`,
			}, a.take())
		})
	}
}

func TestListSessions(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answer("session/list", `{"sessions":[{"sessionId":"a","cwd":"/a","additionalDirectories":[]},{"sessionId":"b","cwd":"/b","title":null}]}`)
	dir, err := workspace.ParseDir("/a")
	require.NoError(t, err)
	some, err := workspace.ParseDirs([]string{"/b"})
	require.NoError(t, err)
	for _, q := range []client.Query{
		{}, {Cwd: dir}, {Additional: &workspace.Dirs{}}, {Cwd: dir, Additional: &some, Cursor: "c"},
	} {
		_, err := c.ListSessions(t.Context(), q)
		require.NoError(t, err)
	}
	require.Equal(t, []string{
		`session/list {}`,
		`session/list {"cwd":"/a"}`,
		`session/list {"additionalDirectories":[]}`,
		`session/list {"cwd":"/a","additionalDirectories":["/b"],"cursor":"c"}`,
	}, a.take())
	page, err := c.ListSessions(t.Context(), client.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{}, page.Sessions[0].AdditionalDirectories)
	require.Nil(t, page.Sessions[1].AdditionalDirectories)
}

func TestSessions(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answers["session/list"] = func(params string) (string, error) {
		switch params {
		case `{}`:
			return `{"sessions":[{"sessionId":"1"},{"sessionId":"2"}],"nextCursor":"n"}`, nil
		case `{"cursor":"n"}`:
			return `{"sessions":[{"sessionId":"3"}],"nextCursor":"e"}`, nil
		}
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad cursor")
	}
	var ids []string
	var last error
	for s, err := range c.Sessions(t.Context(), client.Query{}) {
		if last = err; err == nil {
			ids = append(ids, s.ID)
		}
	}
	require.Equal(t, []string{"1", "2", "3"}, ids)
	var refused *client.Error
	require.ErrorAs(t, last, &refused)
	require.Equal(t, jsonrpc.CodeInvalidParams, refused.Code)
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
	require.Equal(t, []string{`authenticate {"methodId":"key"}`, `session/delete {"sessionId":"s"}`}, a.take())
}

func TestContext(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	a.answers["session/new"] = func(string) (string, error) {
		cancel(errors.New("enough"))
		<-release
		return `{}`, nil
	}
	_, err := c.NewSession(ctx, client.Setup{Roots: roots(t, "/a")})
	require.ErrorContains(t, err, "enough")
	close(release)
}
