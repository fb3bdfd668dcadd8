package pipes

import (
	"encoding/json"
	"fmt"
)

// Message is a line as JSON-RPC. A line that is no JSON object has only its Raw.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	// Raw is the line, without its newline.
	Raw string `json:"-"`
}

// Error is a JSON-RPC error object.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error is the message with its code and data.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d) %s", e.Message, e.Code, e.Data) }

// IsResponse reports whether m answers the request with id, given as JSON text.
func (m Message) IsResponse(id string) bool { return m.Method == "" && string(m.ID) == id }

// Decode decodes the result into v. An error response is returned as its *Error.
func (m Message) Decode(v any) error {
	if m.Error != nil {
		return m.Error
	}
	return json.Unmarshal(m.Result, v)
}

func parse(line []byte) Message {
	var m Message
	if json.Unmarshal(line, &m) != nil {
		m = Message{}
	}
	m.Raw = string(line)
	return m
}

// Request is a request as a line. params is encoded as JSON, json.RawMessage as it is. It
// panics if params cannot be encoded.
func Request(id int, method string, params any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, encode(params))
}

// Notification is a notification as a line; see [Request].
func Notification(method string, params any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, encode(params))
}

func encode(params any) []byte {
	if raw, ok := params.(json.RawMessage); ok {
		return raw
	}
	text, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return text
}
