package acp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// starting is a scripted backend whose Initialize does something first.
type starting struct {
	scripted
	first func()
}

func (s *starting) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	s.first()
	return s.scripted.Initialize(ctx, params, c)
}

// Clause W8.
func TestPanicInInitialize(t *testing.T) {
	failing := true
	c := connect(t, acp.Options{Backend: func() backend.Backend {
		return &starting{first: func() {
			if failing {
				panic("first time")
			}
		}}
	}})
	require.Equal(t, jsonrpc.CodeInternal, c.try("initialize", `{"protocolVersion":1}`).Error.Code)
	require.Equal(t, "not_initialized", c.try("session/new", rootsParams("", folder(t))).reason(t))
	failing = false
	c.initialize()
	c.open(folder(t))
}

// Clause W5.
func TestCancelDuringInitialize(t *testing.T) {
	store := memstore.New(t)
	before := start(t, acp.Options{Store: store})
	a := folder(t)
	id := before.open(a)
	before.leave()

	started := make(chan struct{})
	c := connect(t, acp.Options{
		Store: store, Backend: using(&starting{first: func() { <-started }}),
	})
	_, initialize := c.request("initialize", `{"protocolVersion":1}`)
	_, load := c.request("session/load", rootsParams(id, a))
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(initialize, load, line, notification("session/cancel", idParams(id)))
	unknown, line := c.request("_unknown", `{}`)
	c.send(line) // was read behind the cancel
	close(started)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Equal(t, jsonrpc.CodeMethodNotFound, c.response(unknown).Error.Code)
}

// Clause A1.
func TestInitialize(t *testing.T) {
	c := connect(t, acp.Options{Version: "1.2.3"})
	var result struct {
		ProtocolVersion   int
		AgentInfo         struct{ Name, Version string }
		AuthMethods       []any
		X                 int
		AgentCapabilities struct {
			LoadSession         bool
			McpCapabilities     struct{ Http, Sse *bool }
			PromptCapabilities  struct{ Image bool }
			SessionCapabilities map[string]json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(c.initialize(), &result))
	require.Equal(t, 1, result.ProtocolVersion)
	require.Equal(t, "1.2.3", result.AgentInfo.Version)
	require.NotNil(t, result.AuthMethods)
	require.Equal(t, 1, result.X, "what the backend says is passed on")
	require.True(t, result.AgentCapabilities.PromptCapabilities.Image)
	require.True(t, *result.AgentCapabilities.McpCapabilities.Http)
	require.False(t, *result.AgentCapabilities.McpCapabilities.Sse)
	for name, value := range result.AgentCapabilities.SessionCapabilities {
		require.Equal(t, "{}", string(value), name)
		method := "session/" + name
		if name == "title" {
			method = "session/set_title"
		}
		m := c.try(method, `{}`)
		if name != "additionalDirectories" && name != "list" && name != "x" {
			require.NotNil(t, m.Error, name)
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code,
				"%s is advertised and not served", name)
		}
	}
	for _, name := range []string{"additionalDirectories", "list", "close", "resume", "fork",
		"delete", "title", "archive", "status"} {
		require.Contains(t, result.AgentCapabilities.SessionCapabilities, name)
	}
	require.True(t, result.AgentCapabilities.LoadSession)
}

// Clause W10.
func TestProtocolVersion(t *testing.T) {
	for params, reason := range map[string]string{`{}`: "required",
		`{"protocolVersion":"1"}`: "type", `{"protocolVersion":null}`: "null"} {
		require.Equal(t, reason, connect(t, acp.Options{}).try("initialize", params).reason(t))
	}
}

// Clause W10.
func TestInitializeOnce(t *testing.T) {
	c := connect(t, acp.Options{})
	m := c.try("session/new", rootsParams("", folder(t)))
	require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code)
	require.Equal(t, "not_initialized", m.reason(t))
	c.initialize()
	again := c.try("initialize", `{"protocolVersion":1}`)
	require.Equal(t, jsonrpc.CodeInvalidRequest, again.Error.Code)
	require.Equal(t, "initialized", again.reason(t))
	require.Equal(t, "initialize was already sent: send it once", again.Error.Message)
	c.open(folder(t))
}

// kindless is a backend without a Kind.
type kindless struct{ *scripted }

func (n kindless) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	info, err := n.scripted.Initialize(ctx, params, c)
	info.Kind = ""
	return info, err
}

// Clause A31.
func TestBackendWithoutKind(t *testing.T) {
	c := connect(t, acp.Options{Backend: using(kindless{&scripted{}})})
	m := c.try("initialize", `{"protocolVersion":1}`)
	require.Contains(t, m.Error.Message, "Info.Kind")
	require.Equal(t, "not_initialized", c.try("session/new", rootsParams("", folder(t))).reason(t))
}

// Clause W10.
func TestRequestRightAfterInitialize(t *testing.T) {
	c := connect(t, acp.Options{})
	first, initialize := c.request("initialize", `{"protocolVersion":1}`)
	second, open := c.request("session/new", rootsParams("", folder(t)))
	c.send(initialize, open)
	require.Nil(t, c.response(first).Error)
	require.Nil(t, c.response(second).Error)
}

// Clause W10.
func TestBeforeInitialize(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: using(r)})
	a := folder(t)
	for _, method := range append(opening, "session/list", "session/prompt", "session/close",
		"session/delete",
		"session/set_mode", "session/set_config_option", "authenticate", "logout", "_other") {
		m := c.try(method, altered(rootsParams("s", a), "prompt", `[]`))
		require.NotNil(t, m.Error, method)
		require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code, method)
		require.Equal(t, "not_initialized", m.reason(t), method)
		require.Equal(t, method+" before initialize: send initialize first", m.Error.Message)
	}
	c.send(notification("session/cancel", idParams("s")), notification("_note", `{}`))
	c.initialize()
	require.Empty(t, c.list(`{}`))
	require.Empty(t, r.noted())
}

// Clause W10.
func TestOtherVersions(t *testing.T) {
	for _, version := range []string{"-1", "0", "1", "1.0", "1.5", "2", "65535", "20260701", "1e300",
		"18446744073709551616"} {
		c := connect(t, acp.Options{})
		var result struct{ ProtocolVersion json.RawMessage }
		require.NoError(t,
			json.Unmarshal(c.call("initialize",
				`{"protocolVersion":`+version+`,"info":{},"_meta":{"a":1}}`), &result))
		require.Equal(t, "1", string(result.ProtocolVersion), version)
	}
}

// connecting is a backend that connects MCP servers itself, and takes its time to say so.
type connecting struct {
	scripted
	asked chan struct{}
}

func (r *connecting) Initialize(
	context.Context, backend.Raw, backend.Client,
) (backend.Info, error) {
	<-r.asked
	return backend.Info{
		Kind: "connecting", ConnectsServers: true,
		Initialize: backend.Raw(
			`{"agentCapabilities":{"mcpCapabilities":{"http":true,"sse":false}}}`),
	}, nil
}

// Clause W12.
func TestTransportsRightAfterInitialize(t *testing.T) {
	notOverRemote(t, namesServers)
	r := &connecting{asked: make(chan struct{})}
	c := connect(t, acp.Options{Backend: using(r)})
	params := func(kind string) string {
		return encode(map[string]any{"cwd": folder(t), "mcpServers": []any{
			map[string]any{"type": kind, "name": "s", "url": "http://localhost:1",
				"headers": []any{}},
		}})
	}
	first, initialize := c.request("initialize", `{"protocolVersion":1}`)
	http, open := c.request("session/new", params("http"))
	sse, refused := c.request("session/new", params("sse"))
	unknown, load := c.request("session/load", `{"sessionId":"none",`+params("http")[1:])
	c.send(initialize, open, refused, load)
	close(r.asked)
	require.Nil(t, c.response(first).Error)
	require.Nil(t, c.response(http).Error)
	require.Equal(t, "unsupported", c.response(sse).reason(t))
	require.Equal(t, "not_found", c.response(unknown).reason(t), "its servers are none to refuse")
}
