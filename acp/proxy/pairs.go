package proxy

import (
	"bytes"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// pairs joins the halves of characters that an agent cuts in two chunks. JSON can escape half of a
// character (a surrogate), but many clients refuse a message that contains one.
type pairs struct {
	half []byte            // held back, such as \ud83d
	from *subagent         // whose chunk it ended
	kind sessionstore.Kind // of that chunk
}

// join returns an update of the given kind without the half character at the end of its text, and
// with the one that was held back before. A half whose other half does not follow is dropped.
func (p *pairs) join(from *subagent, kind sessionstore.Kind, update backend.Raw) backend.Raw {
	isNext := p.half != nil && p.from == from && p.kind == kind
	if !isNext && !mayHaveHalf(update) {
		return update
	}
	switch kind {
	case sessionstore.AgentMessageChunk, sessionstore.AgentThoughtChunk:
	default:
		return update
	}
	text := strictjson.Find(update, "update", "content", "text")
	if len(text) < 2 || text[0] != '"' {
		return update
	}
	inner := text[1 : len(text)-1]
	var begin []byte
	if isNext {
		if isSurrogate(inner, "cdefCDEF") {
			begin = p.half
		}
		p.half = nil
	}
	end := len(inner) - len(escape)
	if !endsInHalf(inner) {
		end = len(inner)
	} else {
		p.half, p.from, p.kind = bytes.Clone(inner[end:]), from, kind
	}
	if begin == nil && end == len(inner) {
		return update
	}
	joined := backend.Raw(`"` + string(begin) + string(inner[:end]) + `"`)
	return strictjson.SetAt(update, joined, "update", "content", "text")
}

// escape has the length of an escaped half.
const escape = `\ud800`

// mayHaveHalf is a quick check for what nearly no update has.
func mayHaveHalf(update backend.Raw) bool {
	return bytes.Contains(update, []byte(`\ud`)) || bytes.Contains(update, []byte(`\uD`))
}

// isSurrogate reports whether text begins with an escaped surrogate whose second digit is one of
// digits.
func isSurrogate(text []byte, digits string) bool {
	return len(text) >= len(escape) && mayHaveHalf(text[:len(`\ud`)]) &&
		bytes.IndexByte([]byte(digits), text[3]) >= 0
}

// endsInHalf reports whether text ends with the first half of a pair.
func endsInHalf(text []byte) bool {
	at := len(text) - len(escape)
	if at < 0 || !isSurrogate(text[at:], "89abAB") {
		return false
	}
	before := len(text[:at]) - len(bytes.TrimRight(text[:at], `\`))
	return before%2 == 0 // otherwise the backslash is text
}
