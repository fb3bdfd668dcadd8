package mcpclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const (
	// sessionHeader names the session that a server has given the connection.
	sessionHeader = "Mcp-Session-Id"
	// revisionHeader names the revision of MCP.
	revisionHeader = "Mcp-Protocol-Version"
)

// outgoing is a message that is sent over HTTP.
type outgoing struct {
	id       mcpjsonrpc.ID // not valid for a notification
	method   string        // "" for an answer to the server
	params   json.RawMessage
	schema   json.RawMessage // of the tool that is called, or nil
	encoded  []byte
	revision string // of MCP, "" for that of the connection
}

func newOutgoing(ctx context.Context, m mcpjsonrpc.Message) (*outgoing, error) {
	encoded, err := mcpjsonrpc.EncodeMessage(m)
	out := &outgoing{encoded: encoded}
	switch m := m.(type) {
	case *mcpjsonrpc.Request:
		out.id, out.method, out.params = m.ID, m.Method, m.Params
		out.schema, _ = ctx.Value(schemaKey{}).(json.RawMessage)
		out.revision = strictjson.FindText(m.Params, "_meta", mcp.MetaKeyProtocolVersion)
	case *mcpjsonrpc.Response:
		out.id = m.ID
	}
	return out, err
}

// isCall reports whether the server answers the message.
func (m *outgoing) isCall() bool { return m.method != "" && m.id.IsValid() }

// isHandshake reports whether the message begins the connection.
func (m *outgoing) isHandshake() bool {
	return m.method == "initialize" || m.method == "server/discover" ||
		m.method == "notifications/initialized"
}

// schemaKey is the key of the schema of the tool that is called with a context.
type schemaKey struct{}

// setHeaders sets the headers that repeat parts of the message, on a connection of a revision. The
// modern revisions require them (SEP-2243).
func (m *outgoing) setHeaders(h http.Header, connection string) {
	if m.revision != "" {
		connection = m.revision
	}
	if m.method == "initialize" {
		return
	}
	setHeader(h, revisionHeader, connection)
	if !mcproots.IsModern(connection) || m.method == "" {
		return
	}
	h.Set("Mcp-Method", m.method)
	name := "name"
	if m.method == "resources/read" {
		name = "uri"
	}
	if mcproots.MayAsk(m.method) {
		h.Set("Mcp-Name", strictjson.FindText(m.params, name))
	}
	if m.method == "tools/call" {
		setArguments(h, m.schema, strictjson.Find(m.params, "arguments"))
	}
}

// setArguments sets the headers that a tool's schema requires for arguments.
func setArguments(h http.Header, schema, arguments json.RawMessage) {
	var given, properties map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil ||
		json.Unmarshal(strictjson.Find(schema, "properties"), &properties) != nil {
		return
	}
	for name, property := range properties {
		header := strictjson.FindText(property, "x-mcp-header")
		if value, ok := headerValue(given[name]); ok && header != "" {
			h.Set("Mcp-Param-"+header, value)
		}
		setArguments(h, property, given[name])
	}
}

// headerValue returns an argument as the value of a header. Only texts, integers that are exact in
// JavaScript, and booleans can be one.
func headerValue(argument json.RawMessage) (string, bool) {
	var value any
	if json.Unmarshal(argument, &value) != nil {
		return "", false
	}
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		const exact = 1<<53 - 1
		whole := v == float64(int64(v)) && -exact <= v && v <= exact
		return strconv.FormatFloat(v, 'f', 0, 64), whole
	case string:
		const before, after = "=?base64?", "?="
		odd := func(r rune) bool { return r < ' ' || r > '~' }
		if strings.ContainsFunc(v, odd) || strings.Trim(v, " ") != v ||
			strings.HasPrefix(v, before) && strings.HasSuffix(v, after) {
			v = before + base64.StdEncoding.EncodeToString([]byte(v)) + after
		}
		return v, true
	}
	return "", false
}
