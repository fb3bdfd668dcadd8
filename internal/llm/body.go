package llm

import (
	"bytes"
	"slices"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// messageList says how messages are encoded as a list.
type messageList struct {
	name string // of the member that has it
	// first are elements before the messages.
	first []byte
	// marks says that the last two messages of the user are marked.
	marks bool
	// encode returns a message as the elements of a list, with commas between them.
	encode func(m Message, marked bool) []byte
}

// encodeRequest returns the body of a request with messages as a further member.
func encodeRequest(body any, messages []Message, l messageList) []byte {
	first := len(messages) // that is marked
	for left := 2; l.marks && left > 0 && first > 0; {
		if first--; messages[first].Role == User {
			left--
		}
	}
	all := [][]byte{l.first}
	for i, m := range messages {
		all = append(all, l.encode(m, i >= first && m.Role == User))
	}
	all = slices.DeleteFunc(all, func(elements []byte) bool { return len(elements) == 0 })
	return slices.Concat([]byte(`{"`+l.name+`":[`), bytes.Join(all, []byte(",")), []byte("],"),
		strictjson.Encode(body)[1:])
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
