package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// inbox decodes what a server sends, and holds the server back if it sends too much. Each transport
// has one.
type inbox struct {
	log     *slog.Logger
	secrets *secret.Scrubber // to remove from logged messages; nil for none
	limits  limits
	pending *requests // of the server
	open    *requests // ours, so that answers with another id than they should have find theirs
	notices *rate.Limiter
	invalid atomic.Int32 // messages that could not be read
}

func newInbox(l limits, log *slog.Logger) *inbox {
	return &inbox{log: log, limits: l, pending: newRequests(), open: newRequests(),
		notices: perSecond(l.MaxNotices)}
}

// admit waits until m may be passed to the MCP SDK, or done is closed. It fails if the server reads
// no answers.
func (b *inbox) admit(m mcpjsonrpc.Message, done <-chan struct{}) error {
	switch m := m.(type) {
	case *mcpjsonrpc.Response:
		b.open.remove(m.ID)
	case *mcpjsonrpc.Request:
		if !m.IsCall() {
			waitFor(b.notices, done)
			return nil
		}
		err := b.pending.waitForRoom(b.limits, done)
		b.pending.add(m.ID)
		return err
	}
	return nil
}

// lacksID reports whether a message that the MCP SDK cannot read is an answer without an id.
func lacksID(message json.RawMessage) bool {
	var m struct{ Method, ID any }
	return json.Unmarshal(message, &m) == nil && m.Method == nil && m.ID == nil
}

// noID is the id that an answer without a valid one is given.
const noID = ""

var errNoMessage = errors.New("it has neither a method nor a result nor an error")

// decode returns the messages in data, and the beginning of one that cannot be read, "" if there is
// none. Beyond what the MCP SDK does, it understands a byte order mark, several messages in an
// array, and an answer whose id is a text or missing. An answer that cannot be read becomes an
// error of the request that it names.
func (b *inbox) decode(data []byte) (all []mcpjsonrpc.Message, unreadable string) {
	for _, raw := range splitBatch(data) {
		mended := leaveOut(mcproots.FixInputRequests(raw))
		m, err := mcpjsonrpc.DecodeMessage(mended)
		if err != nil && lacksID(mended) {
			m, err = mcpjsonrpc.DecodeMessage(strictjson.Set(mended, "id", strictjson.Encode(noID)))
		}
		answer, ok := m.(*mcpjsonrpc.Response)
		switch {
		case ok && answer.Error == nil && answer.Result == nil:
			err = errNoMessage
		case ok:
			answer.ID = b.open.find(answer.ID)
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

// unreadable returns an error as the answer to the open request whose id is in raw, or nil. raw
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
	if id = b.open.find(id); err != nil || !b.open.has(id) {
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

// leftOut is the member of a result's _meta that names the entries which leaveOut has removed.
const leftOut = "acp-agent/leftOut"

// leaveOut removes entries from a list that the MCP SDK cannot read, because it rejects the whole
// result for one of them, and tools that can only be called as tasks. In the content of a result it
// puts a text in the place of such a block. It never changes message itself.
func leaveOut(message []byte) []byte {
	for _, kind := range []string{"tools", "prompts", "resources", "content"} {
		result := strictjson.Find(message, "result")
		var entries []json.RawMessage
		if !bytes.Contains(message, []byte(`"`+kind+`"`)) ||
			json.Unmarshal(strictjson.Find(result, kind), &entries) != nil {
			continue
		}
		kept, out := []json.RawMessage{}, []string{}
		for i, entry := range entries {
			why := unusable(kind, entry)
			if why != "" {
				out = append(out, entryName(i, entry)+": "+why)
			}
			if why != "" && kind == "content" {
				entry, why = placeholder(entry, why), ""
			}
			if why == "" {
				kept = append(kept, entry)
			}
		}
		if len(out) == 0 {
			continue
		}
		meta := strictjson.Set(strictjson.Find(result, "_meta"), leftOut, strictjson.Encode(out))
		result = strictjson.Set(result, "_meta", meta)
		result = strictjson.Set(result, kind, strictjson.Encode(kept))
		message = strictjson.Set(message, "result", result)
	}
	return message
}

// placeholder returns a text in place of a content block.
func placeholder(block json.RawMessage, why string) json.RawMessage {
	return strictjson.Encode(map[string]string{"type": "text", "text": fmt.Sprintf(
		"[a content block of %s, which cannot be read: %s]", text.Size(len(block)), why)})
}

// entryName returns the name of an entry of a list, or its number.
func entryName(i int, entry json.RawMessage) string {
	name := ""
	if json.Unmarshal(strictjson.Find(entry, "name"), &name) == nil && name != "" {
		return text.Quote(text.Truncate(name, 100))
	}
	return fmt.Sprintf("number %d", i+1)
}

// unusable returns why an entry of a kind of list cannot be used, or "".
func unusable(kind string, entry json.RawMessage) string {
	var known struct {
		Type      string
		Execution struct{ TaskSupport string }
	}
	_ = json.Unmarshal(entry, &known)
	var into any
	switch kind {
	case "tools":
		into = &mcp.Tool{}
	case "prompts":
		into = &mcp.Prompt{}
	case "resources":
		into = &mcp.Resource{}
	case "content":
		if known.Type == "text" { // it is seldom wrong, and often long
			return ""
		}
		into = &mcp.CallToolResult{}
		entry = slices.Concat([]byte(`{"content":[`), entry, []byte(`]}`))
	}
	err := json.Unmarshal(entry, into)
	switch {
	case err != nil:
		return text.Truncate(text.Printable(describeError(err)), 200)
	case kind == "tools" && known.Execution.TaskSupport == "required":
		return "it can only be called as a task, which acp-agent does not support"
	}
	return ""
}

// leftOutOf returns what leaveOut has removed from a result with this _meta.
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
