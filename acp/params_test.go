package acp_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Every request that ACP defines has keys that are told from others by more than their case.
//
// Clause W2.
func TestMemberNames(t *testing.T) {
	c := connect(t, acp.Options{})
	require.Equal(t, []string{"ProtocolVersion wrong_case"},
		c.try("initialize", `{"protocolVersion":1,"ProtocolVersion":1}`).findings(t))
	c.initialize()
	a := folder(t)
	id := c.open(a)
	for method, tc := range map[string]struct{ params, known string }{
		"authenticate":     {`{"methodId":"none"}`, "methodId"},
		"logout":           {`{}`, "_meta"},
		"session/new":      {rootsParams("", a), "cwd"},
		"session/load":     {rootsParams(id, a), "sessionId"},
		"session/resume":   {rootsParams(id, a), "additionalDirectories"},
		"session/fork":     {rootsParams(id, a), "mcpServers"},
		"session/list":     {`{}`, "cursor"},
		"session/prompt":   {promptParams(id, "say x"), "prompt"},
		"session/set_mode": {`{"sessionId":"` + id + `","modeId":"m"}`, "modeId"},
		"session/set_config_option": {`{"sessionId":"` + id + `","configId":"c","value":"v"}`,
			"configId"},
		"session/close":  {idParams("unknown"), "sessionId"},
		"session/delete": {idParams("unknown"), "sessionId"},
	} {
		t.Run("W2/"+method, func(t *testing.T) {
			wrong := strings.ToUpper(tc.known)
			m := c.try(method, altered(tc.params, wrong, `"x"`))
			require.Equal(t, []string{wrong + " wrong_case"}, m.findings(t))
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			require.Contains(t, m.Error.Message, "write "+tc.known)
			m = c.try(method, strings.Replace(altered(tc.params, "x", "1"), "{", `{"x":2,`, 1))
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			m = c.try(method, altered(tc.params, "unknown", `{"SessionId":1,"CWD":2}`))
			require.False(t, m.Error != nil && m.Error.Code == jsonrpc.CodeInvalidParams,
				"an unknown key is accepted: %+v", m.Error)
		})
	}
}

// A prompt has only content that the protocol knows, since it is stored and shown again.
//
// Clause W2.
func TestContentBlocks(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store})
	id := c.open(folder(t))
	m := c.try("session/prompt", altered(idParams(id), "prompt",
		`[{"type":"text","text":"say a"},{"type":"image","data":"AA=="},7]`))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Equal(t, []string{"prompt[1].mimeType required", "prompt[2] type"}, m.findings(t))
	require.Empty(t, updatesOf(t, store, id))
}

// An array in a request cannot cost many times its length, and the connection goes on.
//
// Clause W11.
func TestLongArrays(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	for _, entry := range []string{"0", "{}", "[]", `"/a"`, `{"type":"x"}`} {
		entries := "[" + strings.Repeat(entry+",", 1<<18/len(entry)) + entry + "]"
		for method, params := range map[string]string{
			"session/prompt": altered(idParams(id), "prompt", entries),
			"session/list":   `{"additionalDirectories":` + entries + `}`,
			"session/new":    altered(rootsParams("", folder(t)), "mcpServers", entries),
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m := c.try(method, params)
			runtime.ReadMemStats(&after)
			require.NotNil(t, m.Error, "%s of %s", method, entry)
			require.Equal(t, -32602, m.Error.Code)
			require.Contains(t, string(m.Error.Data), "too_long", "%s of %s", method, entry)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20<<20), "%s of %s", method,
				entry)
		}
	}
	require.Equal(t, []string{"still here"}, c.texts(id, "say still here"))
}
