package llm

import (
	"bytes"
	"io"
	"slices"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Encoded keeps the messages of a conversation as they were last sent, so that only new messages of
// a request must be encoded. The zero value is empty. It must not be used by two requests at once.
type Encoded struct {
	by       encodedBy
	messages []encodedMessage
}

// encodedBy says in which format, and for which server, messages are encoded.
type encodedBy struct {
	api     API
	variant variant
}

// encodedMessage is a message, or several of one role, in encoded form.
type encodedMessage struct {
	Message
	json []byte // elements of a list
}

// messageList says how messages are encoded as a list.
type messageList struct {
	name string // of the member that has it
	by   encodedBy
	// first are elements before the messages.
	first []byte
	// marks says that the last two messages of the user are marked.
	marks bool
	// encode returns a message as the elements of a list, with commas between them. It depends on
	// by, the message and marked.
	encode func(m Message, marked bool) []byte
}

// request returns the body of a request with messages as a further member. e may be nil.
func (e *Encoded) request(body any, messages []Message, l messageList) requestBody {
	if e == nil {
		e = &Encoded{}
	}
	if e.by != l.by {
		*e = Encoded{by: l.by}
	}
	first := len(messages) // that is marked
	for left := 2; l.marks && left > 0 && first > 0; {
		if first--; messages[first].Role == User {
			left--
		}
	}
	encoded := make([]encodedMessage, len(messages))
	for i, m := range messages {
		switch {
		case i >= first && m.Role == User:
			encoded[i].json = l.encode(m, true)
		case i < len(e.messages) && e.messages[i].same(m):
			encoded[i] = e.messages[i]
		default:
			encoded[i] = encodedMessage{m, l.encode(m, false)}
		}
	}
	e.messages = encoded
	all := append(make(requestBody, 0, 2*len(encoded)+4), []byte(`{"`+l.name+`":[`))
	comma, between := []byte(","), false
	add := func(elements []byte) {
		if between && len(elements) > 0 {
			all = append(all, comma)
		}
		all, between = append(all, elements), between || len(elements) > 0
	}
	add(l.first)
	for i, m := range encoded {
		if add(m.json); len(m.json) > maxEncoded {
			encoded[i] = encodedMessage{}
		}
	}
	return append(all, []byte("],"), strictjson.Encode(body)[1:])
}

// requestBody is the body of a request, in pieces that are not copied.
type requestBody [][]byte

// size returns its length in bytes.
func (b requestBody) size() (n int64) {
	for _, piece := range b {
		n += int64(len(piece))
	}
	return n
}

// reader returns a reader of it.
func (b requestBody) reader() io.ReadCloser { return io.NopCloser(&bodyReader{left: b}) }

// bodyReader reads a body. Unlike an [io.MultiReader] it fills the buffer with many small pieces.
type bodyReader struct {
	left requestBody
	at   int // in the first piece
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) && len(r.left) > 0 {
		copied := copy(p[n:], r.left[0][r.at:])
		n, r.at = n+copied, r.at+copied
		if r.at == len(r.left[0]) {
			r.left, r.at = r.left[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// maxEncoded is the longest encoded message that is kept, in bytes, so that images are not kept
// twice.
const maxEncoded = 1 << 20

// same reports whether e is the encoded form of m. Comparing texts that share memory is fast.
func (e encodedMessage) same(m Message) bool {
	return e.Role == m.Role && slices.EqualFunc(e.Parts, m.Parts, samePart)
}

func samePart(a, b Part) bool {
	switch a := a.(type) {
	case Text:
		return a == b
	case Thinking:
		b, ok := b.(Thinking)
		return ok && a.Text == b.Text && a.Signature == b.Signature && a.Redacted == b.Redacted &&
			bytes.Equal(a.Attached, b.Attached)
	case ToolCall:
		b, ok := b.(ToolCall)
		return ok && a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments &&
			bytes.Equal(a.Attached, b.Attached)
	case ToolResult:
		b, ok := b.(ToolResult)
		return ok && a.ID == b.ID && a.Failed == b.Failed &&
			slices.EqualFunc(a.Content, b.Content, samePart)
	}
	return false // or an image, which is large
}

// merged returns messages in which successive messages of one role are joined, because many servers
// require that roles alternate.
func merged(messages []Message) []Message {
	alternate := true
	for i, m := range messages {
		alternate = alternate && len(m.Parts) > 0 && (i == 0 || m.Role != messages[i-1].Role)
	}
	if alternate {
		return messages
	}
	var all []Message
	for _, m := range messages {
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Parts = append(slices.Clip(all[last].Parts), m.Parts...)
		} else if len(m.Parts) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// elements returns objects as the elements of a JSON list.
func elements(objects []object) []byte {
	if len(objects) == 0 {
		return nil
	}
	list := strictjson.Encode(objects)
	return list[1 : len(list)-1]
}
