package acp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// offering is a scripted backend with these capabilities.
type offering struct {
	scripted
	capabilities string
	connects     bool
}

func (o *offering) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "offering", ConnectsServers: o.connects,
		Initialize: backend.Raw(`{"agentCapabilities":` + o.capabilities + `}`)}, nil
}

// offeredAlways are the capabilities for sessions of every backend.
const offeredAlways = `"additionalDirectories":{},"close":{},"delete":{},"list":{},"resume":{},` +
	`"fork":{},"title":{},"archive":{},"status":{}`

// Clauses A1, A37.
func TestAgentCapabilities(t *testing.T) {
	for name, tc := range map[string]struct {
		given    string
		connects bool
		want     string
	}{
		"A1/nothing": {`{}`, false,
			`{"loadSession":true,"mcpCapabilities":{"http":true,"sse":false},` +
				`"sessionCapabilities":{` + offeredAlways + `}}`},
		"A1/not an object": {`[]`, true,
			`{"loadSession":true,"mcpCapabilities":{"http":false,"sse":false},` +
				`"sessionCapabilities":{` + offeredAlways + `}}`},
		"A37/everything": {`{"loadSession":false,"mcpCapabilities":{"http":true,"acp":true,` +
			`"later":true,"_meta":{"a":1.0}},"sessionCapabilities":{"list":null,"subagents":{},"later":{},` +
			`"systemPrompt":{"mode":{"override":{},"later":{}}},"options":{},"_meta":{"b":1.0}},` +
			`"promptCapabilities":{"image":true,"video":true},"auth":{"logout":{},"later":{}},` +
			`"providers":{},"later":{"x":1.0},"_meta":{"c":1.0}}`, true,
			`{"loadSession":true,"mcpCapabilities":{"http":true,"_meta":{"a":1.0}},` +
				`"sessionCapabilities":{` + offeredAlways + `,` +
				`"systemPrompt":{"mode":{"override":{},"later":{}}},"options":{},"subagents":{},` +
				`"_meta":{"b":1.0}},"promptCapabilities":{"image":true,"video":true},` +
				`"auth":{"logout":{},"later":{}},"providers":{},"later":{"x":1.0},` +
				`"_meta":{"c":1.0}}`},
		"A1/of other types": {`{"mcpCapabilities":true,"sessionCapabilities":[],"auth":null}`,
			true,
			`{"loadSession":true,"mcpCapabilities":{"http":false,"sse":false},` +
				`"sessionCapabilities":{` + offeredAlways + `}}`},
		"A37/twice": {`{"mcpCapabilities":{"acp":true,"acp":false,"http":true}}`,
			true,
			`{"loadSession":true,"mcpCapabilities":{"http":true},` +
				`"sessionCapabilities":{` + offeredAlways + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, acp.Options{
				Backend: using(&offering{capabilities: tc.given, connects: tc.connects})})
			var result struct{ AgentCapabilities json.RawMessage }
			require.NoError(t, json.Unmarshal(c.initialize(), &result))
			require.JSONEq(t, tc.want, string(result.AgentCapabilities))
		})
	}
}

// Clause A37.
func TestAuthStatusWithoutAgent(t *testing.T) {
	c := connect(t, acp.Options{Backend: func() backend.Backend {
		return explore.New()
	}})
	require.Contains(t, string(c.initialize()), `"auth":{"status":{}}`)
	require.JSONEq(t, `{"state":"not_required"}`, string(c.call("auth/status", `{}`)))
	require.JSONEq(t, `{"state":"not_required"}`, string(c.call("auth/status", `{"_meta":{}}`)))
}

// Clause A37.
func TestMethodsOfProxyChains(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	for _, method := range []string{"proxy/initialize", "proxy/successor"} {
		require.Equal(t, jsonrpc.CodeMethodNotFound, c.try(method, `{}`).Error.Code)
		c.send(notification(method, `{}`))
	}
	c.try("_echo", `{}`)
	require.Empty(t, r.noted())
}
