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
	for block, wrong := range map[string]string{
		`{"type":"text"}`:                                 "prompt[1].text required",
		`{"type":"text","text":null}`:                     "prompt[1].text null",
		`{"type":"image","mimeType":"image/png"}`:         "prompt[1].data required",
		`{"type":"image","data":"AA=="}`:                  "prompt[1].mimeType required",
		`{"type":"image","data":1,"mimeType":"x"}`:        "prompt[1].data type",
		`{"type":"audio","mimeType":"audio/wav"}`:         "prompt[1].data required",
		`{"type":"resource_link","uri":"file:///a"}`:      "prompt[1].name required",
		`{"type":"resource_link","name":"a"}`:             "prompt[1].uri required",
		`{"type":"resource"}`:                             "prompt[1].resource required",
		`{"type":"resource","resource":{"text":"x"}}`:     "prompt[1].resource.uri required",
		`{"type":"resource","resource":{"uri":"a:b"}}`:    "prompt[1].resource.text required",
		`{"type":"resource","resource":[]}`:               "prompt[1].resource type",
		`{"type":"video","data":"AA==","mimeType":"v/x"}`: "prompt[1].type unsupported",
		`{"type":"diff","path":"/a","newText":""}`:        "prompt[1].type unsupported",
		`{"type":"","text":"x"}`:                          "prompt[1].type unsupported",
		`{"text":"x"}`:                                    "prompt[1].type required",
		`7`:                                               "prompt[1] type",
		`{"type":"text","text":"","_meta":[]}`:            "prompt[1]._meta type",
		`{"type":"text","text":"","annotations":"x"}`:     "prompt[1].annotations type",

		`{"type":"text","text":"","annotations":{"audience":"user"}}`:            "prompt[1].annotations.audience type",
		`{"type":"text","text":"","annotations":{"priority":"1"}}`:               "prompt[1].annotations.priority type",
		`{"type":"text","text":"","annotations":{"lastModified":1}}`:             "prompt[1].annotations.lastModified type",
		`{"type":"image","data":"AA==","mimeType":"image/png","uri":7}`:          "prompt[1].uri type",
		`{"type":"resource_link","uri":"file:///a","name":"a","title":5}`:        "prompt[1].title type",
		`{"type":"resource_link","uri":"file:///a","name":"a","size":"1"}`:       "prompt[1].size type",
		`{"type":"resource","resource":{"uri":"a:b","text":"x","mimeType":5}}`:   "prompt[1].resource.mimeType type",
		`{"type":"resource","resource":{"uri":"a:b","text":"x","_meta":"more"}}`: "prompt[1].resource._meta type",

		`{"type":"text","text":"","x":{}}`:                          "",
		`{"type":"text","text":"","_meta":null,"annotations":null}`: "",
		`{"type":"text","text":"","annotations":{"audience":["user"],` +
			`"priority":0.5,"lastModified":null}}`: "",
		`{"type":"image","data":"AA==","mimeType":"image/png","uri":null,"_x":1}`: "",
		`{"type":"audio","data":"AA==","mimeType":"audio/wav"}`:                   "",
		`{"type":"resource_link","uri":"file:///a","name":"a","size":1}`:          "",
		`{"type":"resource","resource":{"uri":"a:b","text":"x"}}`:                 "",
		`{"type":"resource","resource":{"uri":"a:b","blob":"AA==","text":null}}`:  "",
	} {
		before := len(updatesOf(t, store, id))
		params := altered(idParams(id), "prompt", `[{"type":"text","text":"say a"},`+block+`]`)
		m := c.try("session/prompt", params)
		if wrong == "" {
			require.Nil(t, m.Error, block)
			continue
		}
		require.NotNil(t, m.Error, block)
		require.Equal(t, -32602, m.Error.Code)
		require.Equal(t, []string{wrong}, m.findings(t), block)
		require.Len(t, updatesOf(t, store, id), before)
	}
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
