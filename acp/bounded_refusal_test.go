package acp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// However much is wrong with a request, the answer is small.
func TestA5_ARefusalIsBounded(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a := folder(t)
	many := func(entry string) string { return "[" + strings.Repeat(entry+",", 10_000) + entry + "]" }
	for name, request := range map[string]struct{ method, params string }{
		"entries of the wrong type": {"session/new", altered(rootsParams("", a), "additionalDirectories", many("null"))},
		"entries without a path":    {"session/new", altered(rootsParams("", a), "additionalDirectories", many(`""`))},
		"a filter":                  {"session/list", `{"additionalDirectories":` + many(`"x"`) + `}`},
		"servers":                   {"session/new", altered(rootsParams("", a), "mcpServers", many(`7`))},
		"variables":                 {"session/new", altered(rootsParams("", a), "mcpServers", `[{"name":"s","command":"c","args":`+many("1")+`,"env":`+many("{}")+`}]`)},
		"blocks":                    {"session/prompt", altered(promptParams("s", "x"), "prompt", many("{}"))},
	} {
		t.Run("A5/"+name, func(t *testing.T) {
			m := c.try(request.method, request.params)
			require.Len(t, m.findings(t), strictjson.MaxViolations)
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			require.Contains(t, m.Error.Message, "and at least 99 more")
		})
	}
}
