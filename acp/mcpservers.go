package acp

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// mcpTransports are the optional transports that were advertised; stdio always is.
type mcpTransports struct{ http, sse bool }

// decodeServers reads mcpServers strictly (W12). What is wrong is reported without the values, which may be secrets.
func decodeServers(field strictjson.Field, p presence, offered mcpTransports) ([]mcpclient.Config, []strictjson.Violation) {
	if field.IsNull() || (!field.Present() && p == optional) {
		return nil, nil
	}
	entries, wrong := field.Masked().Items()
	servers := make([]mcpclient.Config, 0, len(entries))
	for _, entry := range entries {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		s, bad := decodeServer(entry, offered)
		servers, wrong = append(servers, s), append(wrong, bad...)
	}
	return servers, wrong
}

func decodeServer(entry strictjson.Field, offered mcpTransports) (mcpclient.Config, []strictjson.Violation) {
	object, wrong := entry.Object()
	if wrong != nil {
		return mcpclient.Config{}, wrong
	}
	name, wrong := object.Field("name").Text()
	c := mcpclient.Config{Name: name, Transport: mcpclient.Stdio}
	if kind := object.Field("type"); kind.Present() {
		text, bad := kind.Text()
		if bad != nil {
			return c, append(wrong, bad...)
		}
		c.Transport = mcpclient.Transport(text)
	}
	var bad [3][]strictjson.Violation
	switch {
	case c.Transport == mcpclient.Stdio:
		c.Command, bad[0] = object.Field("command").Text()
		c.Args, bad[1] = object.Field("args").Texts()
		c.Env, bad[2] = decodePairs(object.Field("env"))
	case c.Transport == mcpclient.HTTP && offered.http, c.Transport == mcpclient.SSE && offered.sse:
		c.URL, bad[0] = object.Field("url").Text()
		c.Headers, bad[1] = decodePairs(object.Field("headers"))
	default:
		bad[0] = []strictjson.Violation{object.Field("type").Refuse(strictjson.Unsupported).
			Expecting(fmt.Sprintf("MCP servers of type %q were not advertised in mcpCapabilities", bounded(string(c.Transport))))}
	}
	for _, b := range bad {
		wrong = append(wrong, b...)
	}
	return c, wrong
}

// decodePairs reads a list of {name, value}.
func decodePairs(field strictjson.Field) ([]mcpclient.Pair, []strictjson.Violation) {
	entries, wrong := field.Items()
	pairs := make([]mcpclient.Pair, 0, len(entries))
	for _, entry := range entries {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		object, bad := entry.Object()
		if bad == nil {
			name, noName := object.Field("name").Text()
			value, noValue := object.Field("value").Text()
			bad = append(noName, noValue...)
			pairs = append(pairs, mcpclient.Pair{Name: name, Value: value})
		}
		wrong = append(wrong, bad...)
	}
	return pairs, wrong
}

// bounded cuts a client's text for an error.
func bounded(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
