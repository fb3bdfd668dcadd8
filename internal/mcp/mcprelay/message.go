package mcprelay

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// relayedMessage is the part of a message that the relay inspects. It is zero for a line that is
// not a message.
type relayedMessage struct {
	method         string
	id             json.RawMessage // can be nil
	params, result json.RawMessage
}

// parse parses a line. The parts of the message share its memory.
func parse(line []byte) relayedMessage {
	o, err := strictjson.ParseObject(line)
	if err != nil {
		return relayedMessage{}
	}
	var m relayedMessage
	if raw, ok := o.Get("method"); ok && json.Unmarshal(raw, &m.method) != nil {
		return relayedMessage{}
	}
	if raw, _ := o.Get("id"); string(raw) != "null" {
		m.id = raw
	}
	m.params, _ = o.Get("params")
	m.result, _ = o.Get("result")
	return m
}

// idKey returns a key that is equal for equal ids, however they are escaped.
func idKey(id json.RawMessage) string {
	if bytes.HasPrefix(id, []byte{'"'}) {
		return `"` + strictjson.FindText(id)
	}
	return string(id)
}

// response returns a response with a result or an error, as member says, without a newline.
func response(id json.RawMessage, member string, value json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"`+member+`":`), value,
		[]byte(`}`))
}
