package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// The methods differ in whether they need mcpServers, not in how they read them.
func TestW12_EveryMethodReadsServersAlike(t *testing.T) {
	c := served(t, acp.Options{})
	a := folder(t)
	id := c.serve([]string{a}, server("given", "files"))
	for _, method := range opening {
		params := rootsParams(id, a)
		t.Run("W12/refused by "+method, func(t *testing.T) {
			for servers, want := range map[string]string{
				`{}`: "mcpServers type", `""`: "mcpServers type", `[7]`: "mcpServers[0] type", `[null]`: "mcpServers[0] null",
				`[{"command":"c","args":[],"env":[]}]`:                                                   "mcpServers[0].name required",
				`[{"name":null,"command":"c","args":[],"env":[]}]`:                                       "mcpServers[0].name null",
				`[{"name":"s","args":[],"env":[]}]`:                                                      "mcpServers[0].command required",
				`[{"name":"s","command":"c","env":[]}]`:                                                  "mcpServers[0].args required",
				`[{"name":"s","command":"c","args":null,"env":[]}]`:                                      "mcpServers[0].args null",
				`[{"name":"s","command":"c","args":[]}]`:                                                 "mcpServers[0].env required",
				`[{"name":"s","command":"c","args":[],"env":{}}]`:                                        "mcpServers[0].env type",
				`[{"type":"http","url":"http://localhost","headers":[]}]`:                                "mcpServers[0].name required",
				`[{"type":"http","name":"s","headers":[]}]`:                                              "mcpServers[0].url required",
				`[{"type":"http","name":"s","url":"http://localhost"}]`:                                  "mcpServers[0].headers required",
				`[{"type":"sse","url":"http://localhost","headers":[]}]`:                                 "mcpServers[0].name required",
				`[{"type":"sse","name":"s","headers":[]}]`:                                               "mcpServers[0].url required",
				`[{"type":"sse","name":"s","url":"http://localhost"}]`:                                   "mcpServers[0].headers required",
				`[{"type":"http","name":"s","command":"c","args":[],"env":[],"headers":[]}]`:             "mcpServers[0].url required",
				`[{"type":"stdio","name":"s","url":"http://localhost","headers":[],"args":[],"env":[]}]`: "mcpServers[0].command required",
				`[{"type":"ws","name":"s"}]`:                                                             "mcpServers[0].type unsupported",
				`[{"type":"HTTP","name":"s","url":"x","headers":[]}]`:                                    "mcpServers[0].type unsupported",
				`[{"type":"","name":"s","command":"c","args":[],"env":[]}]`:                              "mcpServers[0].type unsupported",
				`[{"type":7,"name":"s","command":"c","args":[],"env":[]}]`:                               "mcpServers[0].type type",
				`[{"name":"s","command":"c","args":[],"env":[{"value":"v"}]}]`:                           "mcpServers[0].env[0].name required",
				`[{"name":"s","command":"c","args":[],"env":[{"name":"N"}]}]`:                            "mcpServers[0].env[0].value required",
				`[{"type":"http","name":"s","url":"x","headers":[{"name":1,"value":"v"}]}]`:              "mcpServers[0].headers[0].name type",
			} {
				m := c.try(method, altered(params, "mcpServers", servers))
				require.Equal(t, []string{want}, m.findings(t), servers)
				require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			}
		})
		t.Run("W12/absent from "+method, func(t *testing.T) {
			m := c.try(method, altered(params, "mcpServers", ""))
			if method == "session/new" || method == "session/load" {
				require.Equal(t, []string{"mcpServers required"}, m.findings(t))
				return
			}
			require.Nil(t, m.Error)
		})
	}
	for _, method := range opening[1:3] {
		t.Run("W12/null is none in "+method, func(t *testing.T) {
			c.call("session/load", servedParams(id, []string{a}, server("given", "files")))
			require.Equal(t, []string{"given idle"}, c.texts(id, "servers"))
			c.call(method, altered(rootsParams(id, a), "mcpServers", "null"))
			require.Equal(t, []string{""}, c.texts(id, "servers"))
		})
	}
}

// Where an agent behind us connects servers, its own capabilities say which types there are; stdio needs none.
func TestW12_ATypeIsRefusedUnlessItWasAdvertised(t *testing.T) {
	for advertised, refused := range map[string]map[string]bool{
		`{"http":true,"sse":false}`: {"sse": true},
		`{"http":false,"sse":true}`: {"http": true},
		`{}`:                        {"http": true, "sse": true},
		`null`:                      {"http": true, "sse": true},
	} {
		c := connect(t, acp.Options{Backend: func() backend.Backend {
			return &advertising{initialize: `{"agentCapabilities":{"mcpCapabilities":` + advertised + `}}`}
		}})
		c.initialize()
		a := folder(t)
		for _, kind := range []string{"http", "sse", "stdio"} {
			m := c.try("session/new", altered(rootsParams("", a), "mcpServers",
				`[{"type":"`+kind+`","name":"s","command":"c","args":[],"env":[],"url":"http://localhost:1","headers":[]}]`))
			if !refused[kind] {
				require.Nil(t, m.Error, "%s with %s", kind, advertised)
				continue
			}
			require.Equal(t, []string{"mcpServers[0].type unsupported"}, m.findings(t))
			require.Contains(t, m.Error.Message, "mcpCapabilities")
		}
	}
}
