package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// outgoing is a message to send: with a method a request, or a notification if id is empty; without
// one a response.
type outgoing struct {
	id      string // JSON text
	method  string
	payload json.RawMessage // params or result
	err     *Error
}

// respond is the response to request id, which is null if zero.
func respond(id ID, result json.RawMessage, err *Error) outgoing {
	m := outgoing{id: id.raw, payload: result, err: err}
	if id.IsZero() {
		m.id = "null"
	}
	if len(result) == 0 {
		m.payload = json.RawMessage("{}")
	}
	return m
}

// appendTo appends the message and a newline. The payload is copied, not encoded again.
func (m *outgoing) appendTo(b []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	if m.id != "" {
		b = append(append(b, `,"id":`...), m.id...)
	}
	switch {
	case m.method != "":
		b = strictjson.AppendText(append(b, `,"method":`...), m.method)
		if len(m.payload) > 0 {
			b = appendLine(append(b, `,"params":`...), m.payload)
		}
	case m.err != nil:
		b = m.err.appendTo(append(b, `,"error":`...))
	default:
		b = appendLine(append(b, `,"result":`...), m.payload)
	}
	return append(b, '}', '\n')
}

// size is about how long the message is.
func (m *outgoing) size() int {
	const around = 96
	n := around + len(m.id) + len(m.method) + len(m.payload)
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

// appendLine appends JSON with spaces for its line breaks, which can only be white space between
// its tokens.
func appendLine(b []byte, raw json.RawMessage) []byte {
	start := len(b)
	b = append(b, raw...)
	for _, end := range []byte("\n\r") {
		for rest := b[start:]; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return b
}

// answer is err as the error of a response. An *Error in err's tree is it; violations are invalid
// params; anything else is an internal error with err's text.
func answer(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if found := strictjson.ViolationsOf(err); found != nil {
		data, encodeErr := json.Marshal(struct {
			Violations []strictjson.Violation `json:"violations"`
		}{found})
		if encodeErr != nil {
			data = nil
		}
		return &Error{Code: CodeInvalidParams, Message: err.Error(), Data: data}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}
