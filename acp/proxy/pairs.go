package proxy

import (
	"bytes"
	"regexp"
	"slices"
	"sync"

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

// chunkText matches the text of a chunk in JSON: perhaps a second half, any characters and escapes,
// and perhaps a first half.
var chunkText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)^"(\\ud[c-f]..)?((?:[^\\]|\\.)*?)(\\ud[89ab]..)?"$`)
})

// join returns an update of the given kind without the half character at the end of its text, and
// with the one that was held back before. A half whose other half does not follow is dropped.
func (p *pairs) join(from *subagent, kind sessionstore.Kind, update backend.Raw) backend.Raw {
	isNext := p.half != nil && p.from == from && p.kind == kind
	mayHaveHalf := bytes.Contains(update, []byte(`\ud`)) || bytes.Contains(update, []byte(`\uD`))
	if !isNext && !mayHaveHalf || // nearly always
		kind != sessionstore.AgentMessageChunk && kind != sessionstore.AgentThoughtChunk {
		return update
	}
	parts := chunkText().FindSubmatch(strictjson.Find(update, "update", "content", "text"))
	if parts == nil { // it is no text
		return update
	}
	second, inner, first := parts[1], parts[2], parts[3]
	var begin []byte
	if isNext && second != nil {
		begin = p.half
	}
	if isNext {
		p.half = nil
	}
	if first != nil {
		p.half, p.from, p.kind = bytes.Clone(first), from, kind
	}
	if begin == nil && first == nil {
		return update
	}
	joined := slices.Concat([]byte(`"`), begin, second, inner, []byte(`"`))
	return strictjson.SetAt(update, joined, "update", "content", "text")
}
