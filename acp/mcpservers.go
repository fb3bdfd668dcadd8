package acp

import (
	"fmt"

	"github.com/acp-agent/acp-agent/acp/strict"
	"github.com/acp-agent/acp-agent/violation"
)

// mcpServer is a session's MCP server as the client configured it. The configuration may hold
// secrets: it is kept in memory only, and never logged or echoed.
type mcpServer struct {
	name      string
	transport string // "stdio", "http" or "sse"
}

// mcpTransports are the optional transports that were advertised; stdio always is.
type mcpTransports struct{ http, sse bool }

// decodeServers reads mcpServers strictly (W12).
func decodeServers(field strict.Field, p presence, offered mcpTransports) ([]mcpServer, []violation.Violation) {
	if field.IsNull() || (!field.Present() && p == optional) {
		return nil, nil
	}
	entries, wrong := field.Masked().Items()
	servers := make([]mcpServer, 0, len(entries))
	for _, entry := range entries {
		s, bad := decodeServer(entry, offered)
		servers, wrong = append(servers, s), append(wrong, bad...)
	}
	return servers, wrong
}

func decodeServer(entry strict.Field, offered mcpTransports) (mcpServer, []violation.Violation) {
	object, wrong := entry.Object()
	if wrong != nil {
		return mcpServer{}, wrong
	}
	name, wrong := object.Field("name").Text()
	s := mcpServer{name: name, transport: "stdio"}
	if kind := object.Field("type"); kind.Present() {
		var bad []violation.Violation
		if s.transport, bad = kind.Text(); bad != nil {
			return s, append(wrong, bad...)
		}
	}
	switch {
	case s.transport == "stdio":
		_, noCommand := object.Field("command").Text()
		_, noArgs := object.Field("args").Texts()
		wrong = append(append(wrong, noCommand...), noArgs...)
		wrong = append(wrong, checkPairs(object.Field("env"))...)
	case s.transport == "http" && offered.http, s.transport == "sse" && offered.sse:
		_, noURL := object.Field("url").Text()
		wrong = append(append(wrong, noURL...), checkPairs(object.Field("headers"))...)
	default:
		wrong = append(wrong, object.Field("type").Refuse(violation.Unsupported).
			Expecting(fmt.Sprintf("MCP servers of type %q were not advertised in mcpCapabilities", bounded(s.transport))))
	}
	return s, wrong
}

// checkPairs checks a list of {name, value}.
func checkPairs(field strict.Field) []violation.Violation {
	entries, wrong := field.Items()
	for _, entry := range entries {
		pair, bad := entry.Object()
		if bad == nil {
			_, noName := pair.Field("name").Text()
			_, noValue := pair.Field("value").Text()
			bad = append(noName, noValue...)
		}
		wrong = append(wrong, bad...)
	}
	return wrong
}

// bounded cuts a client's text for an error.
func bounded(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
