package sessionstore

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

const (
	// maxReplayed is the maximum number of chunks that are joined for a replay: a client still sees
	// a long answer grow.
	maxReplayed = 256
	// maxReplayedBytes limits the length of a chunk joined for a replay. Longer chunks are few, and
	// not worth copying.
	maxReplayedBytes = 8 << 10
	// maxRecordedBytes limits the length of a chunk joined when it is recorded, so that no chunk
	// becomes a line that a client rejects.
	maxRecordedBytes = 64 << 10
)

// Joined yields a history as clients are shown it again: neighbouring text chunks of the agent are
// joined, because a client shows them as one text anyway, and kinds that are never recorded are
// left out. Chunks are joined only if they are the same byte for byte
// except for their text, and contain nothing but text: a chunk with _meta, annotations or an
// unknown member stays as it is. The user's chunks are not joined: two neighbours may be two
// prompts.
func Joined(history iter.Seq2[Update, error]) iter.Seq2[Update, error] {
	return joined(history, maxReplayed, maxReplayedBytes)
}

// joined is [Joined] with limits of a chunk.
func joined(history iter.Seq2[Update, error], maxCount, maxBytes int) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		j := joiner{maxCount: maxCount, maxBytes: maxBytes}
		for u, err := range history {
			if err != nil {
				if j.count == 0 || yield(j.result(), nil) {
					yield(Update{}, err)
				}
				return
			}
			if !u.isEvent() || j.join(u) {
				continue
			}
			if j.count > 0 && !yield(j.result(), nil) {
				return
			}
			j.start(u)
		}
		if j.count > 0 {
			yield(j.result(), nil)
		}
	}
}

// joiner holds a chunk and the chunks that were joined to it.
type joiner struct {
	maxCount, maxBytes int

	first  Update
	head   []byte // of first, up to the opening quote of its text; nil if nothing can be joined
	tail   []byte // of first, from the closing quote of its text; nil until there is a candidate
	joined []byte // head and texts; nil while there is only first
	count  int
}

// textMember precedes the text of a chunk. It cannot occur inside a JSON string.
var textMember = []byte(`"text":"`)

// start begins with the update u.
func (j *joiner) start(u Update) {
	*j = joiner{maxCount: j.maxCount, maxBytes: j.maxBytes, first: u, count: 1}
	switch u.Kind {
	case AgentMessageChunk, AgentThoughtChunk, SubagentEvent:
	default:
		return
	}
	if i := bytes.Index(u.Raw, textMember); i >= 0 {
		j.head = u.Raw[:i+len(textMember)]
	}
}

// join appends the text of u if possible, and reports whether it did.
func (j *joiner) join(u Update) bool {
	// The cheap conditions come first, because most neighbours that cannot be joined are long or
	// belong to other messages.
	if j.head == nil || j.count == j.maxCount ||
		max(len(j.first.Raw), len(j.joined))+len(u.Raw) > j.maxBytes ||
		!bytes.HasPrefix(u.Raw, j.head) || !j.examine() ||
		!bytes.HasSuffix(u.Raw, j.tail) || len(u.Raw) < len(j.head)+len(j.tail) {
		return false
	}
	text := u.Raw[len(j.head) : len(u.Raw)-len(j.tail)]
	if !isUnescaped(text) {
		return false
	}
	j.joined = append(j.joined, text...)
	j.count++
	return true
}

// examine reports whether first contains only text. It decodes first once: another chunk with the
// same head and tail then needs no decoding.
func (j *joiner) examine() bool {
	if j.tail != nil {
		return true
	}
	end := textEnd(j.first.Raw[len(j.head):])
	if end < 0 || !isPlainText(j.first) {
		j.head = nil
		return false
	}
	end += len(j.head)
	j.tail = j.first.Raw[end:]
	j.joined = append(make([]byte, 0, 4*len(j.first.Raw)), j.first.Raw[:end]...)
	return true
}

// result returns the joined chunk. A single chunk is returned unchanged.
func (j *joiner) result() Update {
	if j.count == 1 {
		return j.first
	}
	return Update{Kind: j.first.Kind, Raw: append(j.joined, j.tail...)}
}

// isPlainText reports whether u is a chunk of text without anything else. Duplicate names, invalid
// Unicode and unknown members are rejected.
func isPlainText(u Update) bool {
	var chunk struct {
		SessionID *string `json:"sessionId"` // of a subagent
		Update    struct {
			Kind    Kind `json:"sessionUpdate"`
			Content struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
			MessageID *string `json:"messageId"`
		} `json:"update"`
	}
	err := json.Unmarshal(u.Raw, &chunk, json.RejectUnknownMembers(true))
	kind := chunk.Update.Kind
	return err == nil && chunk.Update.Content.Type == "text" &&
		(kind == AgentMessageChunk || kind == AgentThoughtChunk)
}

// isUnescaped reports whether b, which is between quotes in valid JSON, is the content of a single
// string to which another one can be appended: valid UTF-8 without escaped surrogates, whose halves
// could be in two chunks.
func isUnescaped(b []byte) bool {
	return textEnd(b) < 0 && utf8.Valid(b) &&
		!bytes.Contains(b, []byte(`\ud`)) && !bytes.Contains(b, []byte(`\uD`))
}

// textEnd returns the index of the quote that ends the JSON string whose content b starts with, or
// -1.
func textEnd(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return -1
		}
		at += i
		escapes := 0
		for escapes < at && b[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		at++
	}
}
