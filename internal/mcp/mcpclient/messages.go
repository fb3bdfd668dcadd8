package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// noID is the id that an answer without a valid one is given.
const noID = ""

// decodeMessage decodes a message of a server, which it mends if the MCP SDK cannot read it and
// there is only one thing that it can mean. The answers are to the open requests, nil for none.
func decodeMessage(raw []byte, open *openRequests) (mcpjsonrpc.Message, error) {
	fixed := fixMessage(raw)
	m, err := mcpjsonrpc.DecodeMessage(fixed)
	if err != nil {
		mended := mendEnvelope(fixed)
		if mended == nil {
			return unreadableAnswer(raw, open, err)
		}
		if m, err = mcpjsonrpc.DecodeMessage(mended); err != nil {
			return nil, err
		}
	}
	answer, ok := m.(*mcpjsonrpc.Response)
	if ok && answer.Error == nil && answer.Result == nil {
		return unreadableAnswer(raw, open, errNoMessage)
	}
	if ok && open != nil {
		answer.ID = open.find(answer.ID)
		if answer.ID.Raw() == noID {
			return answer, errAnswersNothing
		}
	}
	return m, nil
}

var (
	errNoMessage      = errors.New("it has neither a method nor a result nor an error")
	errAnswersNothing = errors.New("it does not say which request it answers")
)

// unreadableAnswer returns an error as the answer to an open request, if raw has its id. Otherwise
// it returns err. raw need not be JSON: a value may be NaN, and text may stand before it or behind.
func unreadableAnswer(raw []byte, open *openRequests, err error) (mcpjsonrpc.Message, error) {
	outline := strictjson.Outline(raw[max(0, bytes.IndexByte(raw, '{')):])
	has := func(member string) bool { return strictjson.Find(outline, member) != nil }
	var given any
	if open == nil || has("method") || !has("jsonrpc") && !has("result") && !has("error") ||
		json.Unmarshal(strictjson.Find(outline, "id"), &given) != nil {
		return nil, err
	}
	id, failed := mcpjsonrpc.MakeID(given)
	if failed != nil || !open.has(open.find(id)) {
		return nil, err
	}
	return &mcpjsonrpc.Response{ID: open.find(id), Error: &mcpjsonrpc.Error{
		Code:    mcpjsonrpc.CodeInternalError,
		Message: "its answer cannot be read: " + text.Quote(firstLine(raw))}}, nil
}

// splitBatch returns the messages in data, which may be an array of them and begin with a byte
// order mark.
func splitBatch(data []byte) []json.RawMessage {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff")))
	if len(data) == 0 {
		return nil
	}
	var batch []json.RawMessage
	if data[0] == '[' && json.Unmarshal(data, &batch) == nil {
		return batch
	}
	return []json.RawMessage{data}
}

// mendEnvelope returns a message with the members that JSON-RPC prescribes, or nil if raw is not a
// message.
func mendEnvelope(raw []byte) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	switch string(m["error"]) {
	case "null", "false", `""`:
		delete(m, "error")
	}
	answers := m["result"] != nil || m["error"] != nil
	if m["method"] == nil && !answers {
		return nil
	}
	m["jsonrpc"] = json.RawMessage(`"2.0"`)
	if m["error"] != nil {
		m["error"] = mendError(m["error"])
	}
	var id any
	_ = json.Unmarshal(m["id"], &id)
	if known, err := mcpjsonrpc.MakeID(id); m["method"] == nil && (err != nil || !known.IsValid()) {
		m["id"] = strictjson.Encode(noID)
	}
	return strictjson.Encode(m)
}

// mendError returns an error with a code and a message. Some servers send a text, or the code as a
// text.
func mendError(raw json.RawMessage) json.RawMessage {
	mended := mcpjsonrpc.Error{Code: mcpjsonrpc.CodeInternalError}
	if json.Unmarshal(raw, &mended.Message) == nil {
		return strictjson.Encode(mended)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		mended.Message = string(raw)
		return strictjson.Encode(mended)
	}
	if code, err := strconv.ParseInt(strings.Trim(string(members["code"]), `"`), 10, 64); err == nil {
		mended.Code = code
	}
	if json.Unmarshal(members["message"], &mended.Message) != nil {
		mended.Message = text.Truncate(string(raw), maxErrorText)
	}
	mended.Data = members["data"]
	return strictjson.Encode(mended)
}

// fixMessage returns a server's message in a form that the MCP SDK can read. It never changes
// message itself.
func fixMessage(message []byte) []byte {
	return fixSetup(fixLists(fixContent(mcproots.FixInputRequests(message))))
}

// fixSetup mends the answer to initialize, of which only the protocol version must be right.
func fixSetup(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"protocolVersion"`)) {
		return message
	}
	result := strictjson.Find(message, "result")
	var capabilities map[string]json.RawMessage
	if json.Unmarshal(result, &mcp.InitializeResult{}) == nil ||
		json.Unmarshal(strictjson.Find(result, "capabilities"), &capabilities) != nil {
		return message
	}
	for name, value := range capabilities {
		switch string(value) {
		case "true":
			capabilities[name] = json.RawMessage("{}")
		case "false":
			delete(capabilities, name)
		}
	}
	result = strictjson.Set(result, "capabilities", strictjson.Encode(capabilities))
	mended, why := mendEntry("initialize", result)
	if why != "" {
		return message
	}
	return strictjson.Set(message, "result", mended)
}

// fixContent replaces content blocks that the MCP SDK cannot read by texts that say so, because the
// SDK rejects a whole result for one such block.
func fixContent(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"content"`)) &&
		!bytes.Contains(message, []byte(`"toolResult"`)) {
		return message
	}
	result := strictjson.Find(message, "result")
	if isPlain(strictjson.Find(result, "content")) {
		return message
	}
	blocks, changed := contentOf(result)
	for i, block := range blocks {
		if typed := withType(block); typed != nil {
			blocks[i], block, changed = typed, typed, true
		}
		if why := unreadable(block); why != "" {
			blocks[i], changed = textBlock(why), true
		}
	}
	if !changed {
		return message
	}
	return strictjson.Set(message, "result",
		strictjson.Set(result, "content", strictjson.Encode(blocks)))
}

// contentOf returns the content blocks of a result. It reports changed if the result has a text or
// one block in their place, or the toolResult of 2024-10.
func contentOf(result json.RawMessage) (blocks []json.RawMessage, changed bool) {
	content := strictjson.Find(result, "content")
	if content == nil {
		old := strictjson.Find(result, "toolResult")
		switch {
		case old == nil:
			return nil, false
		case strictjson.IsObject(old) && strictjson.Find(old, "content") != nil:
			content = strictjson.Find(old, "content")
		case old[0] == '[':
			content = old
		default:
			return []json.RawMessage{asText(old)}, true
		}
		changed = true
	}
	switch {
	case json.Unmarshal(content, &blocks) == nil:
		return blocks, changed
	case strictjson.IsObject(content):
		return []json.RawMessage{content}, true
	case content[0] == '"':
		return []json.RawMessage{asText(content)}, true
	}
	return nil, false
}

// asText returns a text block of a JSON value.
func asText(value json.RawMessage) json.RawMessage {
	s := string(value)
	_ = json.Unmarshal(value, &s)
	return textBlock(s)
}

func textBlock(s string) json.RawMessage {
	return strictjson.Encode(map[string]string{"type": "text", "text": s})
}

// withType returns a content block with the type that its members tell, or nil if it has a type or
// they do not.
func withType(block json.RawMessage) json.RawMessage {
	var b struct {
		Type, Text, Data *string
		MimeType         string
		Resource         json.RawMessage
	}
	if json.Unmarshal(block, &b) != nil || b.Type != nil && *b.Type != "" {
		return nil
	}
	kind := ""
	switch {
	case b.Text != nil && b.Data == nil && b.Resource == nil:
		kind = "text"
	case b.Resource != nil:
		kind = "resource"
	case b.Data != nil && strings.HasPrefix(b.MimeType, "image/"):
		kind = "image"
	case b.Data != nil && strings.HasPrefix(b.MimeType, "audio/"):
		kind = "audio"
	default:
		return nil
	}
	return strictjson.Set(block, "type", strictjson.Encode(kind))
}

// isPlain reports whether content has only blocks of text, so that it need not be examined.
func isPlain(content json.RawMessage) bool {
	var blocks []*struct{ Type string }
	return json.Unmarshal(content, &blocks) == nil && !slices.ContainsFunc(blocks,
		func(b *struct{ Type string }) bool { return b == nil || b.Type != "text" })
}

// unreadable returns why a content block cannot be read, or "".
func unreadable(block json.RawMessage) string {
	alone := slices.Concat([]byte(`{"content":[`), block, []byte(`]}`))
	err := json.Unmarshal(alone, &mcp.CallToolResult{})
	if err == nil {
		return ""
	}
	var header struct{ Type string }
	if json.Unmarshal(block, &header) == nil && header.Type == "" {
		return fmt.Sprintf("[a content block of %s, which cannot be read: it has no type]",
			text.Size(len(block)))
	}
	kind := text.Size(len(block))
	if header.Type != "" {
		kind = "type " + text.Quote(text.Truncate(header.Type, 40)) + " and " + kind
	}
	return fmt.Sprintf("[a content block of %s, which cannot be read: %s]",
		kind, text.Truncate(text.Printable(describeError(err)), 200))
}

// leftOut is the member of a result's _meta that names the entries which fixLists has left out.
const leftOut = "acp-agent/leftOut"

// fixLists leaves entries out of a list that the MCP SDK cannot read, because it rejects the whole
// list for one of them, and tools that can only be called as tasks. It mends entries of which only
// a description is wrong, and a cursor that is a number.
func fixLists(message []byte) []byte {
	result := strictjson.Find(message, "result")
	if next := strictjson.Find(result, "nextCursor"); json.Unmarshal(next, new(float64)) == nil && string(next) != "null" {
		result = strictjson.Set(result, "nextCursor", strictjson.Encode(string(next)))
		message = strictjson.Set(message, "result", result)
	}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if !bytes.Contains(message, []byte(`"`+kind+`"`)) {
			continue
		}
		var entries, kept []json.RawMessage
		if json.Unmarshal(strictjson.Find(result, kind), &entries) != nil {
			continue
		}
		var out []string
		for i, entry := range entries {
			mended, why := mendEntry(kind, entry)
			if why != "" {
				out = append(out, fmt.Sprintf("%s: %s", entryName(i, entry), why))
				continue
			}
			kept = append(kept, mended)
		}
		if len(out) == 0 && slices.EqualFunc(entries, kept,
			func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			continue
		}
		meta := strictjson.Set(strictjson.Find(result, "_meta"), leftOut, strictjson.Encode(out))
		result = strictjson.Set(result, "_meta", meta)
		result = strictjson.Set(result, kind, strictjson.Encode(slices.Concat(
			[]json.RawMessage{}, kept)))
		message = strictjson.Set(message, "result", result)
	}
	return message
}

// entryName returns the name of an entry of a list, or its number.
func entryName(i int, entry json.RawMessage) string {
	name := ""
	if json.Unmarshal(strictjson.Find(entry, "name"), &name) == nil && name != "" {
		return text.Quote(text.Truncate(name, 100))
	}
	return fmt.Sprintf("number %d", i+1)
}

// mendEntry returns an entry of a list of a kind, or the result of initialize, in a form that the MCP SDK can read, or why it is
// left out.
func mendEntry(kind string, entry json.RawMessage) (_ json.RawMessage, why string) {
	decode := func(raw json.RawMessage) error { return json.Unmarshal(raw, &mcp.Tool{}) }
	switch kind {
	case "prompts":
		decode = func(raw json.RawMessage) error { return json.Unmarshal(raw, &mcp.Prompt{}) }
	case "initialize":
		decode = func(raw json.RawMessage) error { return json.Unmarshal(raw, &mcp.InitializeResult{}) }
	case "resources":
		decode = func(raw json.RawMessage) error { return json.Unmarshal(raw, &mcp.Resource{}) }
	}
	support := ""
	if kind == "tools" && json.Unmarshal(
		strictjson.Find(entry, "execution", "taskSupport"), &support) == nil && support == "required" {
		return nil, "it can only be called as a task, which acp-agent does not support"
	}
	if decode(entry) == nil {
		return entry, ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(entry, &members) != nil {
		return nil, "it is not an object"
	}
	for name, value := range members {
		alone := strictjson.Encode(map[string]json.RawMessage{name: value})
		switch err := decode(alone); {
		case err == nil:
		case name == "name", name == "uri", name == "inputSchema", name == "arguments",
			name == "protocolVersion", name == "capabilities":
			return nil, describeError(err)
		case value[0] != '{' && value[0] != '[' && (name == "description" || name == "title"):
			members[name] = strictjson.Encode(string(value))
		default:
			delete(members, name)
		}
	}
	mended := strictjson.Encode(members)
	if err := decode(mended); err != nil {
		return nil, describeError(err)
	}
	return mended, ""
}

// leftOutOf returns what fixLists has left out of a result with this _meta.
func leftOutOf(meta mcp.Meta) []string {
	var names []string
	out, _ := meta[leftOut].([]any)
	for _, one := range out {
		if name, ok := one.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
