package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// maxID is the length of the longest id, in bytes of JSON text.
const maxID = 1 << 10

// ID is the id of a request. It is kept as the JSON text that was sent, so that it is echoed
// exactly. The zero ID means a notification.
type ID struct{ raw string }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.raw == "" }

// String returns the id as JSON text, "" for the zero ID.
func (id ID) String() string { return id.raw }

// key returns a canonical form of the id: "a" and "\u0061" are the same id.
func (id ID) key() string {
	var text string
	if len(id.raw) > 0 && id.raw[0] == '"' && json.Unmarshal([]byte(id.raw), &text) == nil {
		return string(strictjson.Text(text))
	}
	return id.raw
}

// message is a decoded line: a request, a notification or a response.
type message struct {
	id     ID // zero for a notification
	method string
	params json.RawMessage

	isResponse bool
	response   response
}

// response is the outcome of a request we sent.
type response struct {
	result json.RawMessage
	err    error
}

// decode decodes a line. It returns an error if the line is not a valid message. Then the message
// still has the id of a request that must be answered, or of a response whose call must not wait
// for ever, if that is known.
func decode(line []byte) (message, *Error) {
	m, invalid := decodeValid(line)
	if invalid != nil && m.response.result == nil {
		m = decodeBeginning(strictjson.Outline(line))
		if invalid.Code == CodeParse && !m.isResponse {
			m.id = ID{} // of a request: it is null, as JSON-RPC says
		}
	}
	return m, invalid
}

// RequestID returns the id of a line that is a request, but perhaps not a valid one. It is zero for
// all other lines, and if it is not certain.
func RequestID(line []byte) ID {
	if m := decodeBeginning(strictjson.Outline(line)); !m.isResponse {
		return m.id
	}
	return ID{}
}

func decodeValid(line []byte) (message, *Error) {
	if text.IsUTF16(line) {
		return message{}, Errorf(CodeParse, "the message is UTF-16 text: send it as UTF-8")
	}
	if !utf8.Valid(line) {
		return message{}, Errorf(CodeParse, "the message is not valid UTF-8")
	}
	o, err := strictjson.ParseObject(line)
	switch {
	case errors.Is(err, strictjson.ErrNotObject) && line[0] == '[':
		return message{}, Errorf(CodeInvalidRequest,
			"batches are not supported: send one message a line")
	case errors.Is(err, strictjson.ErrNotObject):
		return message{}, Errorf(CodeInvalidRequest, "the message is not an object")
	case errors.Is(err, strictjson.ErrTooDeep):
		return message{}, Errorf(CodeInvalidRequest, "the message has %v", err)
	case errors.Is(err, strictjson.ErrTooManyMembers):
		return message{}, Errorf(CodeInvalidRequest, "%v", err)
	case err != nil:
		return message{}, Errorf(CodeParse, "%v", err)
	}
	if name, twice := o.Duplicate(); twice {
		return message{}, Errorf(CodeInvalidRequest, "the message has two members %s",
			strictjson.Text(shownName(name)))
	}
	m := message{isResponse: !o.Field("method").Present() && !o.Field("params").Present()}
	id := o.Field("id")
	if id.Present() {
		switch {
		case len(id.Raw()) > maxID:
			return message{}, Errorf(CodeInvalidRequest, "the id is longer than 1 KiB")
		case isID(id.Raw()):
			m.id = ID{raw: string(id.Raw())}
		case !m.isResponse || !id.IsNull():
			return message{}, Errorf(CodeInvalidRequest, "the id is neither a string nor a number")
		}
	}
	if version, _ := o.Field("jsonrpc").Text(); version != "2.0" {
		return m, Errorf(CodeInvalidRequest, `the message lacks "jsonrpc":"2.0"`)
	}
	if m.isResponse {
		return decodeResponse(m, o, line)
	}
	return decodeRequest(m, o, line)
}

// isID reports whether raw, a JSON value, is a string or a number.
func isID(raw json.RawMessage) bool {
	c := raw[0]
	return c == '"' || c == '-' || '0' <= c && c <= '9'
}

// decodeBeginning decodes the members at the beginning of a line, up to an incomplete one. The
// message has an id only if the line is known to be a request or a response.
func decodeBeginning(line []byte) message {
	const enough = 64 << 10
	o := strictjson.Beginning(line[:min(len(line), enough)])
	has := func(name string) bool { return o.Field(name).Present() }
	m, ids := message{isResponse: has("result") || has("error")}, 0
	for name := range o.All() {
		if name == "id" {
			ids++
		}
	}
	if ids > 1 || m.isResponse == (has("method") || has("params")) {
		return message{}
	}
	if id := o.Field("id").Raw(); len(id) > 0 && len(id) <= maxID && isID(id) && utf8.Valid(id) {
		m.id = ID{raw: string(id)}
	}
	_ = json.Unmarshal(o.Field("method").Raw(), &m.method) // for the log
	if m.isResponse {
		m.response.err = errMalformedResponse
	}
	return m
}

func decodeRequest(m message, o strictjson.Object, line []byte) (message, *Error) {
	if o.Field("result").Present() || o.Field("error").Present() {
		return message{}, Errorf(CodeInvalidRequest, "the message is both a request and a response")
	}
	if !o.Field("method").Present() {
		return message{}, Errorf(CodeInvalidRequest, "the message has no method")
	}
	method, invalid := o.Field("method").Text()
	if invalid != nil {
		return message{}, Errorf(CodeInvalidRequest, "the method is not a string")
	}
	m.method = method
	params, _ := o.Get("params")
	m.params = detach(params, line)
	return m, nil
}

// detach returns raw, a part of line, or a copy if it would keep a much longer line in memory.
func detach(raw json.RawMessage, line []byte) json.RawMessage {
	const small = 4 << 10
	if len(line) <= small || len(raw) >= len(line)/2 {
		return raw
	}
	return bytes.Clone(raw)
}

// decodeResponse decodes a response. What its sender left out or gave as null beside the other does
// not count: JavaScript leaves out a result that is undefined, and others always send both members.
func decodeResponse(m message, o strictjson.Object, line []byte) (message, *Error) {
	result, failure := o.Field("result"), o.Field("error")
	failed := failure.Present() && !failure.IsNull()
	switch {
	case !o.Field("id").Present() && result.Present() && !failed:
		// An error without an id reports a problem with a message of ours. Answering it could loop
		// for ever.
		return message{}, Errorf(CodeInvalidRequest, "the response has no id")
	case failed && result.Present() && !result.IsNull():
		m.response.err = errMalformedResponse
	case failed:
		m.response.err = decodeError(failure.Raw())
	case result.Present():
		m.response.result = detach(result.Raw(), line)
	default:
		m.response.result = json.RawMessage("null")
		return m,
			Errorf(CodeInvalidRequest, "the message has neither a method nor a result nor an error")
	}
	return m, nil
}

func decodeError(raw json.RawMessage) error {
	var e struct {
		Code    *int            `json:"code"`
		Message *string         `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if strictjson.Decode(raw, &e) != nil || e.Code == nil || e.Message == nil {
		return errMalformedResponse
	}
	return &Error{Code: *e.Code, Message: *e.Message, Data: e.Data}
}

// outgoing is a message to send: with a method it is a request, or a notification if id is empty;
// without one it is a response.
type outgoing struct {
	id      string // JSON text
	method  string
	payload json.RawMessage // params or result; must not change until it is written
	err     *Error          // has no payload
}

// respond returns the response to a request. A zero id is sent as null.
func respond(id ID, result json.RawMessage, err *Error) outgoing {
	m := outgoing{id: id.raw, err: err}
	if id.IsZero() {
		m.id = "null"
	}
	if err != nil {
		return m
	}
	if m.payload = result; len(result) == 0 {
		m.payload = json.RawMessage("{}")
	}
	return m
}

// appendTo appends the message. The payload is copied, not encoded again.
func (m *outgoing) appendTo(b []byte) []byte {
	b = m.appendHead(b)
	if m.err != nil {
		b = m.err.appendTo(b)
	} else {
		b = appendLine(b, m.payload)
	}
	return append(b, '}')
}

// appendHead appends everything before the payload or the error.
func (m *outgoing) appendHead(b []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	if m.id != "" {
		b = append(append(b, `,"id":`...), m.id...)
	}
	switch {
	case m.method != "":
		b = strictjson.AppendText(append(b, `,"method":`...), m.method)
		if len(m.payload) > 0 {
			b = append(b, `,"params":`...)
		}
	case m.err != nil:
		b = append(b, `,"error":`...)
	default:
		b = append(b, `,"result":`...)
	}
	return b
}

// size estimates the length of the message.
func (m *outgoing) size() int {
	const overhead = 96
	n := overhead + len(m.id) + len(m.method) + len(m.payload)
	if m.err != nil {
		n += len(m.err.Message) + len(m.err.Data)
	}
	return n
}

func (e *Error) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"code":`...), int64(e.Code), 10)
	b = strictjson.AppendText(append(b, `,"message":`...), e.Message)
	if len(e.Data) > 0 {
		b = appendLine(append(b, `,"data":`...), e.Data)
	}
	return append(b, '}')
}

// appendLine appends JSON, replacing line breaks with spaces. In valid JSON line breaks only occur
// between tokens.
func appendLine(b []byte, raw json.RawMessage) []byte {
	start := len(b)
	b = append(b, raw...)
	if !hasLineBreak(raw) {
		return b
	}
	for i, c := range b[start:] {
		if c == '\n' || c == '\r' {
			b[start+i] = ' '
		}
	}
	return b
}
