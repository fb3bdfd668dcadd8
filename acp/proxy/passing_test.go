package proxy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// odd is members that a decoder would not give back as they were.
const odd = `"f":1.0,"e":1e5,"big":123456789012345678901234567890,"twice":1,"twice":2,"u":"\u00e4\ud83d\ude00\/<&>","deep":{ "a" : [ 1 , null ] },"lone":"\ud800"`

func TestInitializePassesThrough(t *testing.T) {
	b := initialized(t, plain, proxy.Options{})
	require.Equal(t, "proxy", b.info.Kind)
	require.Equal(t, backend.RuntimeConnects, b.info.MCP)
	require.Equal(t, `{"protocolVersion":1,"agentInfo":{"name":"scripted"},"x":1.0}`, string(b.info.Initialize))
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"n":1.0}}}`},
		b.received("initialize"))
}

func TestW10_TheChildIsAskedForTheVersionThatWeSpeak(t *testing.T) {
	b := start(t, plain, proxy.Options{})
	_, err := b.runtime.Initialize(t.Context(), backend.Raw(`{"protocolVersion":65535}`), b.editor)
	require.NoError(t, err)
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`}, b.received("initialize"))
}

func TestP6_AnUpdateArrivesAsItWasSent(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+
		`send {"jsonrpc":"2.0","method":"session/update","params":{`+odd+`,"sessionId":"child-1","update":{"sessionUpdate":"_unknown",`+odd+`},"_meta":{`+odd+`}}}`+"\n"+
		`send {"params":{"sessionId":"child-1","update":null},"method":"session/update","jsonrpc":"2.0"}`+"\n"+
		answered+"await _x/more\n"+
		`send {"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan"},"sessionId":"child-1"}}`+"\n", proxy.Options{})
	s, opened := b.open()
	require.JSONEq(t, `{"modes":{"n":1.0}}`, string(opened.Result))
	require.Contains(t, string(opened.Result), `{"n":1.0}`)
	require.Equal(t, `{"v":1,"id":"child-1","way":"context"}`, b.editor.state)
	result, err := b.prompt(s)
	require.NoError(t, err)
	require.Equal(t, `{"stopReason":"end_turn","_meta":{"n":1e0}}`, result)
	require.Equal(t, `turn update {`+odd+`,"update":{"sessionUpdate":"_unknown",`+odd+`},"_meta":{`+odd+`}}`, b.editor.next())
	require.Equal(t, `turn update {"update":null}`, b.editor.next())
	b.editor.silent()
	s.Notify(t.Context(), "_x/more", nil)
	require.Equal(t, `host update {"update":{"sessionUpdate":"plan"}}`, b.editor.next(), "outside of the turn")
}

func TestP6_TheChildsRequestsAndNotificationsPass(t *testing.T) {
	b := initialized(t, plain+opened+"await session/prompt\n"+
		`send {"jsonrpc":"2.0","id":"a","method":"session/request_permission","params":{"sessionId":"child-1","options":[],`+odd+`}}`+"\nawait reply \"a\"\n"+
		`send {"jsonrpc":"2.0","id":-5,"method":"_x/ask","params":{"sessionId":"child-1","n":1.0}}`+"\nawait reply -5\n"+
		`send {"jsonrpc":"2.0","id":8,"method":"_x/ask","params":{`+odd+`}}`+"\nawait reply 8\n"+
		`send {"jsonrpc":"2.0","id":9,"method":"_x/list","params":[1.0]}`+"\nawait reply 9\n"+
		`send {"jsonrpc":"2.0","id":10,"method":"_x/none"}`+"\nawait reply 10\n"+
		`send {"jsonrpc":"2.0","id":11,"method":"_x/null","params":{"sessionId":null}}`+"\nawait reply 11\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1","n":1.0}}`+"\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"n":1.0}}`+"\n"+
		`send {"jsonrpc":"2.0","id":12,"method":"session/update","params":{"sessionId":"child-1","update":{}}}`+"\nawait reply 12\n"+
		answered, proxy.Options{})
	b.editor.answer("session/request_permission", `{"outcome":{`+odd+`}}`)
	b.editor.answers["_x/ask"] = func() (backend.Raw, error) {
		return nil, &jsonrpc.Error{Code: -32042, Message: "no <way>", Data: backend.Raw(`{"n":1.0}`)}
	}
	s, _ := b.open()
	_, err := b.prompt(s)
	require.NoError(t, err)
	for _, want := range []string{
		`host call session/request_permission {"options":[],` + odd + `}`,
		`host call _x/ask {"n":1.0}`,
		`client call _x/ask {` + odd + `}`,
		`client call _x/list [1.0]`,
		`client call _x/none `,
		`client call _x/null {"sessionId":null}`,
		`host notify _x/note {"n":1.0}`,
		`client notify _x/note {"n":1.0}`,
		`turn update {"update":{}}`,
	} {
		require.Equal(t, want, b.editor.next())
	}
	got := b.received("")
	require.Equal(t, `{"jsonrpc":"2.0","id":"a","result":{"outcome":{`+odd+`}}}`, got[0])
	require.JSONEq(t, `{"jsonrpc":"2.0","id":-5,"error":{"code":-32042,"message":"no <way>","data":{"n":1.0}}}`, got[1])
	require.JSONEq(t, `{"jsonrpc":"2.0","id":8,"error":{"code":-32042,"message":"no <way>","data":{"n":1.0}}}`, got[2])
	require.Contains(t, got[3], `"code":-32601`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":12,"result":{}}`, got[6])
}

func TestP6_TheClientsRequestsAndNotificationsPassInOrder(t *testing.T) {
	b := initialized(t, plain+opened+
		"await session/set_mode\n"+`send {"jsonrpc":"2.0","id":$session/set_mode$,"result":{`+odd+`}}`+"\n"+
		"await authenticate\n"+`send {"jsonrpc":"2.0","id":$authenticate$,"error":{"code":-32000,"message":"log in","data":{"n":1.0}}}`+"\n", proxy.Options{})
	s, _ := b.open()
	result, err := await(t, s.Call(t.Context(), "session/set_mode", backend.Raw(`{"modeId":"ask",`+odd+`}`)))
	require.NoError(t, err)
	require.Equal(t, `{`+odd+`}`, result)
	s.Notify(t.Context(), "_x/note", backend.Raw(`{"n":1.0}`))
	b.runtime.Notify(t.Context(), "_x/note", backend.Raw(`[1.0]`))
	_, err = await(t, b.runtime.Call(t.Context(), "authenticate", backend.Raw(`{"methodId":"key"}`)))
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jsonrpc.Error{Code: -32000, Message: "log in", Data: backend.Raw(`{"n":1.0}`)}, *refused)
	got := b.received("session/set_mode", "_x/note", "authenticate")
	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"child-1","modeId":"ask",` + odd + `}}`,
		`{"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1","n":1.0}}`,
		`{"jsonrpc":"2.0","method":"_x/note","params":[1.0]}`,
		`{"jsonrpc":"2.0","id":4,"method":"authenticate","params":{"methodId":"key"}}`,
	}, got)
}

func TestP6_WhatComesBeforeTheSessionIsKnownIsHeldInOrder(t *testing.T) {
	update := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":{"n":%s}}}` + "\n"
	b := initialized(t, plain+"await session/new\n"+
		"repeat 50 "+fmt.Sprintf(update, "$i")+
		`send {"jsonrpc":"2.0","id":7,"method":"_x/ask","params":{"sessionId":"child-1"}}`+"\n"+
		`send {"jsonrpc":"2.0","method":"_x/note","params":{"sessionId":"child-1"}}`+"\n"+
		`send {"jsonrpc":"2.0","id":8,"method":"_x/ask","params":{"sessionId":"child-2"}}`+"\n"+
		`send {"jsonrpc":"2.0","id":$session/new$,"result":{"sessionId":"child-1"}}`+"\n"+
		"repeat 50 "+fmt.Sprintf(update, "5$i")+
		"replies 2\n"+`send {"jsonrpc":"2.0","method":"_x/end"}`, proxy.Options{})
	b.editor.answer("_x/ask", `{"n":1.0}`)
	b.open()
	for i := range 50 {
		require.Equal(t, fmt.Sprintf(`host update {"update":{"n":%d}}`, i), b.editor.next())
	}
	require.Equal(t, `host call _x/ask {}`, b.editor.next())
	require.Equal(t, `host notify _x/note {}`, b.editor.next())
	for i := range 50 {
		require.Equal(t, fmt.Sprintf(`host update {"update":{"n":5%d}}`, i), b.editor.next())
	}
	require.Equal(t, `client notify _x/end `, b.editor.next())
	got := b.received("")
	require.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`,
		`{"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"sessionId: no session has this id"}}`,
	}, got)
}

func TestHeldMessagesAreBounded(t *testing.T) {
	for name, o := range map[string]proxy.Options{
		"by number": {MaxHeld: 2},
		"by size":   {MaxHeldBytes: 2 * len(`{"update":0}`)},
	} {
		t.Run(name, func(t *testing.T) {
			b := initialized(t, plain+"await session/new\n"+
				`repeat 4 {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":$i}}`+"\n"+
				`send {"jsonrpc":"2.0","id":7,"method":"_x/ask","params":{"sessionId":"child-1"}}`+"\nawait reply 7\n"+
				`send {"jsonrpc":"2.0","id":$session/new$,"result":{"sessionId":"child-1"}}`+"\n", o)
			b.open()
			require.Equal(t, `host update {"update":0}`, b.editor.next())
			require.Equal(t, `host update {"update":1}`, b.editor.next())
			b.editor.silent()
			require.Contains(t, b.received("")[0], "too many messages")
		})
	}
}

func TestASessionThatNobodyKnowsIsRefused(t *testing.T) {
	b := initialized(t, plain+
		`send {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-9","update":{}}}`+"\n"+
		`send {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"child-9","path":"/a"}}`+"\nawait reply 7\n"+
		`send {"jsonrpc":"2.0","method":"_x/end"}`+"\n", proxy.Options{})
	require.Equal(t, `client notify _x/end `, b.editor.next())
	require.Contains(t, b.received("")[0], `"code":-32602`)
}
