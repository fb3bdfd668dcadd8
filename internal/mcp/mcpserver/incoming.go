package mcpserver

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577); they are supported for existing clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// incoming is a message of a client, decoded once. It has what the server must know before it
// passes the message to the SDK, which decodes it in its own way.
type incoming struct {
	jsonrpc.Message
	request *jsonrpc.Request // nil for a response
	modern  string           // the modern revision that the request names, or ""
	problem string           // what is wrong with the types of a call's params, or ""
}

// decodeMessage decodes a message as the SDK does, which tells names apart by their case.
func decodeMessage(raw []byte) (incoming, error) {
	raw = mendRoots(raw)
	message, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return incoming{}, err
	}
	m := incoming{Message: message}
	if request, ok := message.(*jsonrpc.Request); ok {
		m.request = request
		m.decodeParams()
	}
	return m, nil
}

// checkJSON returns what is wrong with text as JSON, and the code of an error that says so, or "".
func checkJSON(text []byte) (code int, problem string) {
	if json.Valid(text) {
		return 0, ""
	}
	if _, err := strictjson.ParseObject(text); errors.Is(err, strictjson.ErrTooDeep) {
		return jsonrpc.CodeInvalidRequest, "has " + err.Error()
	}
	return jsonrpc.CodeParseError, "is not valid JSON"
}

// mendRoots returns a message in which an entry of a list of roots that the SDK cannot read has an
// URI that tells what it was, because the SDK would reject the whole list for one such entry. It
// never changes raw.
func mendRoots(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`"roots"`)) {
		return raw
	}
	if result, changed := mendList(strictjson.Find(raw, "result")); changed {
		return strictjson.Set(raw, "result", result)
	}
	params := strictjson.Find(raw, "params")
	var responses map[string]json.RawMessage
	if json.Unmarshal(strictjson.Find(params, "inputResponses"), &responses) != nil {
		return raw
	}
	mended := false
	for key, response := range responses {
		if result, changed := mendList(response); changed {
			responses[key], mended = result, true
		}
	}
	if !mended {
		return raw
	}
	return strictjson.Set(raw, "params",
		strictjson.Set(params, "inputResponses", strictjson.Encode(responses)))
}

// mendList is mendRoots for the result of roots/list.
func mendList(result json.RawMessage) (_ json.RawMessage, changed bool) {
	var entries []json.RawMessage
	if json.Unmarshal(strictjson.Find(result, "roots"), &entries) != nil {
		return result, false
	}
	for i, entry := range entries {
		if json.Unmarshal(entry, &mcp.Root{}) == nil {
			continue
		}
		uri := ""
		given := strictjson.Find(entry, "uri")
		if json.Unmarshal(given, &uri) != nil {
			uri = text.Truncate(cmp.Or(string(given), string(entry)), maxQuoted)
		}
		entries[i], changed = strictjson.Encode(map[string]string{"uri": uri}), true
	}
	if !changed {
		return result, false
	}
	return strictjson.Set(result, "roots", strictjson.Encode(entries)), true
}

// isCall reports whether m is a request that expects an answer.
func (m *incoming) isCall() bool { return m.request != nil && m.request.IsCall() }

// decodeParams decodes the params into the type that the SDK has for them.
func (m *incoming) decodeParams() {
	if len(m.request.Params) == 0 {
		return
	}
	params, typed := paramsOf(m.request.Method)
	if err := strictjson.Decode(m.request.Params, params); err != nil {
		if typed {
			m.problem = malformedParams(m.request.Method, err)
		}
		return
	}
	if revision, ok := params.GetMeta()[mcp.MetaKeyProtocolVersion].(string); ok &&
		mcproots.IsModern(revision) {
		m.modern = revision
	}
}

// otherParams are the params of methods whose types are not checked.
type otherParams struct {
	mcp.Meta `json:"_meta"`
}

// paramsOf returns the params of a method, and whether their types are checked.
func paramsOf(method string) (params interface{ GetMeta() map[string]any }, typed bool) {
	switch method {
	case "initialize":
		return new(mcp.InitializeParams), true
	case "tools/call":
		return new(mcp.CallToolParamsRaw), true
	case "tools/list":
		return new(mcp.ListToolsParams), true
	case "resources/list":
		return new(mcp.ListResourcesParams), true
	case "resources/read":
		return new(mcp.ReadResourceParams), true
	case "prompts/list":
		return new(mcp.ListPromptsParams), true
	case "prompts/get":
		return new(mcp.GetPromptParams), true
	}
	return new(otherParams), false
}

// malformedParams describes an error of decoding the params of a method. The SDK's own error would
// quote all params and name its Go types.
func malformedParams(method string, err error) string {
	problem := "the params of " + method + " are malformed"
	if wrong, ok := strictjson.WrongTypeIn(err); ok {
		problem += ": " + text.Truncate(wrong.Field, maxQuoted) + " cannot be of type " + wrong.Kind
	}
	return problem
}
