package mcpclient_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
)

// A tool that cannot be read does not cost the list, and the log names it.
func TestBadEntryInList(t *testing.T) {
	const good = `{"name":"good","description":"A tool","inputSchema":{"type":"object"}}`
	for bad, says := range map[string]string{
		`{"name":"bad","description":7,"inputSchema":{"type":"object"}}`:      `wrong type in \"description\"`,
		`{"name":"bad","annotations":"none","inputSchema":{"type":"object"}}`: `wrong type in \"annotations\"`,
		`{"name":7}`:     `wrong type in \"name\"`,
		`7`:              "wrong type",
		`null`:           "",
		`{"name":"bad"}`: "",
	} {
		h, c := mcptest.NewFake(t)
		h.Respond("tools/list", `"result":{"tools":[`+good+","+bad+`]}`)
		f := serving(t, mcpclient.Options{}, c)
		listing := f.listing()
		require.Equal(t, "h.good", listing.Tools[0].Name, bad)
		if says != "" {
			require.Len(t, listing.Tools, 1, bad)
			require.Contains(t, f.logs.String(), "left out a tool of an MCP server", bad)
			require.Contains(t, f.logs.String(), says, bad)
		}
	}
}

// Tools that can only be called as a task, or only by the server's own page, are not offered.
func TestToolsThatModelsCannotCall(t *testing.T) {
	h, c := mcptest.NewFake(t)
	var tools []string
	for name, member := range map[string]string{
		"required": `"execution":{"taskSupport":"required"}`, "optional": `"execution":{"taskSupport":"optional"}`,
		"unsaid": `"execution":{}`, "strange": `"execution":{"taskSupport":7}`,
		"app": `"_meta":{"ui":{"visibility":["app"]}}`, "nobody": `"_meta":{"ui":{"visibility":[]}}`,
		"word": `"_meta":{"ui":{"visibility":"app"}}`, "both": `"_meta":{"ui":{"visibility":["model","app"]}}`,
		"other": `"_meta":{"ui":{"visibility":["app","model"]}}`, "model": `"_meta":{"ui":{"visibility":["model"]}}`,
		"page": `"_meta":{"ui":{"resourceUri":"ui://x"}}`, "none": `"_meta":{}`, "odd": `"_meta":{"ui":7}`,
	} {
		tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"},`+member+`}`)
	}
	h.Respond("tools/list", `"result":{"tools":[`+strings.Join(tools, ",")+`]}`)
	f := serving(t, mcpclient.Options{}, c)
	all, err := mcptest.ListTools(t.Context(), f)
	require.NoError(t, err)
	var names []string
	for _, tool := range all {
		names = append(names, tool.Remote)
	}
	require.ElementsMatch(t, []string{"optional", "unsaid", "strange", "both", "other", "model", "page", "none", "odd"}, names)
	_, err = f.try("h.app", "{}")
	require.ErrorContains(t, err, "have no tool h.app")
}

// An error says which part of a server's description of itself cannot be read.
func TestOddSetup(t *testing.T) {
	for name, test := range map[string]struct{ setup, says string }{
		"as it should be":   {`"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}`, ""},
		"no information":    {`"capabilities":{"tools":{}}`, ""},
		"version a number":  {`"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":1}`, `wrong type in "version"`},
		"instructions list": {`"capabilities":{"tools":{}},"instructions":["a","b"]`, `wrong type in "instructions"`},
		"capability true":   {`"capabilities":{"tools":true}`, `wrong type in "tools"`},
		"a list":            {`"capabilities":["tools"]`, `wrong type in "capabilities"`},
		"revision a number": {`"capabilities":{"tools":{}},"protocolVersion":2025`, `wrong type in "protocolVersion"`},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := mcptest.NewFake(t)
			revision := `"protocolVersion":"2025-06-18",`
			if strings.Contains(test.setup, "protocolVersion") {
				revision = ""
			}
			h.Respond("initialize", `"result":{`+revision+test.setup+`}`)
			h.Respond("tools/list", `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
			f := serving(t, mcpclient.Options{}, c)
			listings, err := f.List(t.Context())
			require.NoError(t, err)
			listing := <-listings
			if test.says != "" {
				require.ErrorContains(t, listing.Err, test.says)
				return
			}
			require.NoError(t, listing.Err)
			require.Len(t, listing.Tools, 1)
		})
	}
}

func TestOddResults(t *testing.T) {
	h, c := mcptest.NewFake(t)
	f := serving(t, mcpclient.Options{}, c)
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"}]}`: "a",
		`{"content":[{"text":"a"}]}`:               `[Content that cannot be read: unrecognized content type ""]`,
		`{"content":[{"type":"text","text":"a"},{"type":"video","data":"AA=="},{"type":"image","data":7}]}`: "a\n" +
			`[Content that cannot be read: unrecognized content type "video"]` + "\n" +
			"[Content that cannot be read: the answer has a value of the wrong type in \"data\"]",
		`{"content":"a"}`: `MCP server h: the answer has a value of the wrong type in "content"`,
	} {
		h.Respond("tools/call", `"result":`+result)
		got, err := f.try("h.x", "{}")
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got, result)
	}
	for _, result := range []string{
		`{"content":[{"type":"text","text":"a"}],"isError":"no"}`, `[]`, `"text"`, `7`,
		`{"content":[{"type":"text","text":7}]}`, `{"content":[7]}`,
		`{"content":[{"type":"resource","resource":7}]}`, `{"content":[{"type":"text","text":"a","annotations":[]}]}`,
		`{"content":[],"_meta":7}`,
	} {
		h.Respond("tools/call", `"result":`+result)
		got, err := f.try("h.x", "{}")
		if err != nil {
			got = err.Error()
		}
		require.Contains(t, got, "a value of the wrong type", result)
		require.NotRegexp(t, `Go |mcp\.|json:|struct`, got, result)
	}
}

// Servers on stdio print their answers in several ways.
func TestOddAnswersOnStdout(t *testing.T) {
	for name, answer := range map[string]string{
		"id as text":      `{"jsonrpc":"2.0","id":"%s","result":%s}`,
		"byte order mark": "\ufeff" + `{"jsonrpc":"2.0","id":%s,"result":%s}`,
		"array":           `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},{"jsonrpc":"2.0","id":%s,"result":%s}]`,
		"text behind":     `{"jsonrpc":"2.0","id":%s,"result":%s} ok`,
		"after rubbish":   "{ starting\n" + `{"jsonrpc":"2.0","id":%s,"result":%s}`,
		"rubbish before":  "[info] {\n" + `{"jsonrpc":"2.0","id":%s,"result":%s}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := serving(t, mcpclient.Options{}, mcptest.Self("s", "odd", "ANSWER="+answer))
			require.Equal(t, "0", f.call("s.count", ""))
		})
	}
	for name, test := range map[string]struct{ answer, says string }{
		"error as text":    {`{"jsonrpc":"2.0","id":%s,"error":"no disk"}`, "no disk"},
		"no version":       {`{"id":%s,"result":{}}`, "its answer cannot be read"},
		"error false":      {`{"jsonrpc":"2.0","id":%s,"error":false}`, "its answer cannot be read"},
		"neither":          {`{"jsonrpc":"2.0","id":%s}`, "its answer cannot be read"},
		"NaN":              {`{"jsonrpc":"2.0","id":%s,"result":{"content":[NaN]}}`, "its answer cannot be read"},
		"a comma too many": {`{"jsonrpc":"2.0","id":%s,"result":{"content":[]},}`, "its answer cannot be read"},
		"text before":      {`ready{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, "its answer cannot be read"},
		"an event":         {`data: {"jsonrpc":"2.0","id":%s,"result":{}}` + "\n", "its answer cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving(t, mcpclient.Options{}, mcptest.Self("s", "odd", "CALL_ONLY=1", "ANSWER="+test.answer))
			_, err := f.try("s.count", "")
			require.ErrorContains(t, err, test.says)
			require.Equal(t, acpmcp.Ready, f.Servers()[0].State, fmt.Sprint(f.Servers()[0].Err))
		})
	}
}
