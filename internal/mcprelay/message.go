package mcprelay

import (
	"encoding/json"
	"strconv"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// message is what the relay looks at in a line. The zero value is a line that is no message.
type message struct {
	method         string
	id             json.RawMessage // nil if there is none
	params, result json.RawMessage
}

// read reads a line. Its parts share memory with it.
func read(line []byte) message {
	o, err := strictjson.ParseObject(line)
	if err != nil {
		return message{}
	}
	var m message
	if raw, ok := o.Get("method"); ok && json.Unmarshal(raw, &m.method) != nil {
		return message{}
	}
	if raw, _ := o.Get("id"); string(raw) != "null" {
		m.id = raw
	}
	m.params, _ = o.Get("params")
	m.result, _ = o.Get("result")
	return m
}

// isRequest reports whether it asks for an answer.
func (m message) isRequest() bool { return m.method != "" && m.id != nil }

// idKey tells ids apart, however they are written; "" is no id.
func idKey(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil && len(id) > 0 && id[0] == '"' {
		return strconv.Quote(text)
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return string(id)
}

// textOf is the text of a JSON string.
func textOf(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// at is the value at a path of names in nested objects, nil if there is none.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		o, err := strictjson.ParseObject(raw)
		if err != nil {
			return nil
		}
		raw, _ = o.Get(name)
	}
	return raw
}

// isObject reports whether a value that is well-formed is an object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// put sets the value at a path of names. All but the last name an object that is there.
func put(raw, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) > 1 {
		inner, err := put(at(raw, path[0]), value, path[1:]...)
		if err != nil {
			return nil, err
		}
		value = inner
	}
	return strictjson.Put(raw, path[0], value)
}

// quoted is text as a JSON string.
func quoted(text string) json.RawMessage { return strictjson.AppendText(nil, text) }

// answer is a response.
func answer(id json.RawMessage, result json.RawMessage) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"result":`...)
	return append(append(out, result...), '}')
}

// refusal is an error response, of the code for internal errors.
func refusal(id json.RawMessage, why string) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"error":{"code":-32603,"message":`...)
	return append(append(out, quoted(why)...), `}}`...)
}
