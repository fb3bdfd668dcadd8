package sessionstore

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

const (
	// maxRun is how many chunks are joined at most, so that a client still sees a long answer grow.
	maxRun = 256
	// maxRunBytes is how long they may get. Longer ones are few, and not worth the copying.
	maxRunBytes = 8 << 10
)

// Joined yields a history with neighbouring text chunks of the agent joined, which a client shows as one
// anyway, also where they were stored in different segments. That is what [Merge] does within one; it is
// quicker, and joins only chunks that agree byte for byte but for their text. A user's chunks stay
// as they are: two neighbours may be two prompts.
func Joined(history iter.Seq2[Update, error]) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		var r run
		for u, err := range history {
			if err != nil {
				if r.count == 0 || yield(r.end(), nil) {
					yield(nil, err)
				}
				return
			}
			if r.take(u) {
				continue
			}
			if r.count > 0 && !yield(r.end(), nil) {
				return
			}
			r.begin(u)
		}
		if r.count > 0 {
			yield(r.end(), nil)
		}
	}
}

// run is a chunk and those that were joined to it.
type run struct {
	first  Update
	head   []byte // of first, up to its text; nil if nothing joins it
	tail   []byte // what follows the text; nil until a second chunk has asked for it
	joined []byte // head and texts; nil as long as there is only first
	count  int
}

// textMember is how the text of a chunk begins. Within a JSON string it cannot stand.
var textMember = []byte(`"text":"`)

// begin starts a run with u.
func (r *run) begin(u Update) {
	*r = run{first: u, count: 1}
	if i := bytes.Index(u, textMember); i >= 0 {
		r.head = u[:i+len(textMember)]
	}
}

// take adds u to the run, if it can.
func (r *run) take(u Update) bool {
	// What is quickly seen comes first: most neighbours that are not joined are long, or of other messages.
	if r.head == nil || r.count == maxRun || max(len(r.first), len(r.joined))+len(u) > maxRunBytes ||
		!bytes.HasPrefix(u, r.head) || !r.open() || !bytes.HasSuffix(u, r.tail) || len(u) < len(r.head)+len(r.tail) {
		return false
	}
	text := u[len(r.head) : len(u)-len(r.tail)]
	if !isText(text) {
		return false
	}
	r.joined = append(r.joined, text...)
	r.count++
	return true
}

// open looks closely at the run's first chunk, once: a chunk with the same bytes around its text is then
// as plain as this one.
func (r *run) open() bool {
	if r.tail != nil {
		return true
	}
	chunk, plain := plainText(r.first)
	end := textEnd(r.first[len(r.head):])
	if !plain || chunk.Update.Kind == "user_message_chunk" || end < 0 {
		r.head = nil
		return false
	}
	end += len(r.head)
	r.tail = r.first[end:]
	r.joined = append(make([]byte, 0, 4*len(r.first)), r.first[:end]...)
	return true
}

// end is what the run has become. A chunk that stands alone keeps its bytes.
func (r *run) end() Update {
	if r.count == 1 {
		return r.first
	}
	return append(r.joined, r.tail...)
}

// isText reports whether b, which stands between the quotes of valid JSON, is the inside of a single string
// that can be continued: valid UTF-8, without surrogates, whose halves might be in two chunks.
func isText(b []byte) bool {
	return textEnd(b) < 0 && utf8.Valid(b) && !bytes.Contains(b, []byte(`\ud`)) && !bytes.Contains(b, []byte(`\uD`))
}

// textEnd is where the string that b is inside of ends, -1 if it goes on.
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
