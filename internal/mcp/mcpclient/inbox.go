package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inbox decodes what a server sends, and holds the server back if it sends too much. Each transport
// has one.
type inbox struct {
	log        *slog.Logger
	secrets    *secret.Scrubber // to remove from logged messages
	limits     limits
	pending    chan struct{} // has an element for each request of the server without an answer
	unanswered sync.Map      // the ids of our requests
	invalid    atomic.Int32  // messages that could not be read
}

func newInbox(l limits, log *slog.Logger, secrets *secret.Scrubber) *inbox {
	return &inbox{log: log, secrets: secrets, limits: l, pending: make(chan struct{}, l.MaxRequests)}
}

// admit waits until m may be passed to the MCP SDK, or done is closed. The SDK handles every
// request of a server that it reads at once and keeps it until the answer is written, so a server
// that asks without reading would fill our memory. admit fails if the server reads no answers in
// time.
func (b *inbox) admit(m mcpjsonrpc.Message, done <-chan struct{}) error {
	switch m := m.(type) {
	case *mcpjsonrpc.Response:
		b.unanswered.Delete(m.ID)
	case *mcpjsonrpc.Request:
		if !m.IsCall() {
			break
		}
		select {
		case b.pending <- struct{}{}:
		case <-time.After(b.limits.SettleMax):
			return &limitError{fmt.Sprintf("it sent %d requests and read no answers within %v",
				b.limits.MaxRequests, b.limits.SettleMax)}
		case <-done:
		}
	}
	return nil
}

// answered makes room for another request of the server.
func (b *inbox) answered() {
	select {
	case <-b.pending:
	default:
	}
}

var errNoMessage = errors.New("it has neither a method nor a result nor an error")

// decode returns the messages in data, and the beginning of one that cannot be read, "" if there is
// none. Beyond what the MCP SDK does, it understands a byte order mark, several messages in an
// array, and an answer whose id is a text. An answer that cannot be read becomes an error of the
// request that it names, see also readable.
func (b *inbox) decode(data []byte) (all []mcpjsonrpc.Message, unreadable string) {
	for _, raw := range splitBatch(data) {
		m, err := mcpjsonrpc.DecodeMessage(raw)
		answer, ok := m.(*mcpjsonrpc.Response)
		switch {
		case ok && answer.Error == nil && answer.Result == nil:
			err = errNoMessage
		case ok:
			answer.ID, _ = b.findUnanswered(answer.ID)
			answer.Result = b.readable(fixInputRequests(answer.Result))
		}
		if err != nil {
			if answer = b.unreadable(raw); answer == nil {
				unreadable = firstLine(raw)
				b.logInvalid(unreadable, err)
				continue
			}
			m = answer
		}
		all = append(all, m)
	}
	return all, unreadable
}

// findUnanswered returns the id of our request that an answer with this id is for, and whether there
// is one: some servers send numbers as texts.
func (b *inbox) findUnanswered(id mcpjsonrpc.ID) (found mcpjsonrpc.ID, known bool) {
	if _, known := b.unanswered.Load(id); known {
		return id, true
	}
	found = id
	b.unanswered.Range(func(key, _ any) bool {
		if ours := key.(mcpjsonrpc.ID); id.Raw() == fmt.Sprint(ours.Raw()) {
			found, known = ours, true
		}
		return !known
	})
	return found, known
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

// unreadable returns an error as the answer to our request whose id is in raw, or nil. raw
// need not be JSON: a value may be NaN, and text may stand before it or behind.
func (b *inbox) unreadable(raw []byte) *mcpjsonrpc.Response {
	outline := strictjson.Outline(raw[max(0, bytes.IndexByte(raw, '{')):])
	has := func(member string) bool { return strictjson.Find(outline, member) != nil }
	var given any
	if has("method") || !has("jsonrpc") && !has("result") && !has("error") ||
		json.Unmarshal(strictjson.Find(outline, "id"), &given) != nil {
		return nil
	}
	id, err := mcpjsonrpc.MakeID(given)
	id, known := b.findUnanswered(id)
	if err != nil || !known {
		return nil
	}
	return &mcpjsonrpc.Response{ID: id, Error: &mcpjsonrpc.Error{
		Code: mcpjsonrpc.CodeInternalError, Message: cannotBeRead(firstLine(raw))}}
}

func cannotBeRead(line string) string { return "its answer cannot be read: " + text.Quote(line) }

// maxInvalid is how many messages are logged at most because they cannot be read.
const maxInvalid = 5

// logInvalid logs the beginning of something that is not a message. Some servers print greetings
// and traces to stdout.
func (b *inbox) logInvalid(line string, err error) {
	n := b.invalid.Add(1)
	if n > maxInvalid {
		return
	}
	b.log.Warn("skipped what an MCP server sent, because it is not a message",
		"line", text.Truncate(b.secrets.Text(line), 200), "error", err)
	if n == maxInvalid {
		b.log.Warn("more of this is skipped without a warning")
	}
}

// readable returns a result without tools that the MCP SDK cannot read, or that can only be called
// as tasks, and with a text in place of content that it cannot read: the SDK would reject the whole
// result, and a call has had its effect. It never changes result itself.
func (b *inbox) readable(result json.RawMessage) json.RawMessage {
	var tools, content []json.RawMessage
	if json.Unmarshal(strictjson.Find(result, "tools"), &tools) == nil {
		tools = slices.DeleteFunc(tools, func(tool json.RawMessage) bool {
			err := json.Unmarshal(tool, &mcp.Tool{})
			if err != nil {
				b.log.Warn("left out a tool of an MCP server", "error", describeError(err),
					"tool", firstLine([]byte(b.secrets.Text(string(tool)))))
			}
			return err != nil ||
				string(strictjson.Find(tool, "execution", "taskSupport")) == `"required"`
		})
		return strictjson.Set(result, "tools", strictjson.Encode(tools))
	}
	if json.Unmarshal(strictjson.Find(result, "content"), &content) != nil ||
		json.Unmarshal(result, &mcp.CallToolResult{}) == nil {
		return result
	}
	for i := range content {
		one := strictjson.Encode(map[string]any{"content": content[i : i+1]})
		if err := json.Unmarshal(one, &mcp.CallToolResult{}); err != nil {
			why := text.Truncate("[Content that cannot be read: "+describeError(err), maxErrorText)
			content[i] = strictjson.Encode(map[string]string{"type": "text", "text": why + "]"})
		}
	}
	return strictjson.Set(result, "content", strictjson.Encode(content))
}

// fixInputRequests makes the requests for input in a result readable for the MCP SDK. The SDK
// rejects a request for roots without params, which the official TypeScript server sends, and
// panics at one that is null. It never changes result itself.
func fixInputRequests(result json.RawMessage) json.RawMessage {
	var requests map[string]map[string]json.RawMessage
	if json.Unmarshal(strictjson.Find(result, "inputRequests"), &requests) != nil {
		return result
	}
	for key, request := range requests {
		if request == nil {
			request = map[string]json.RawMessage{}
			requests[key] = request
		}
		if params := request["params"]; len(params) == 0 || string(params) == "null" {
			request["params"] = json.RawMessage("{}")
		}
	}
	return strictjson.Set(result, "inputRequests", strictjson.Encode(requests))
}
