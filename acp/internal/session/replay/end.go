package replay

import (
	"crypto/sha256"
	"hash"
	"io"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// end finds the end of the stored history in one that the backend replays: its last prompt,
// as often as the stored history has it. A backend may replay prompts in other pieces, leave some
// out, or replay another history. Then the end is not found, and nothing counts as new. The zero
// value is the end of an empty history, after which everything comes.
type end struct {
	turnReader        // of what is replayed
	size       int    // of the stored history, in bytes
	last       string // the hash of the last prompt
	times      int    // how often it was not replayed yet
	over       bool   // what is replayed comes after the end
}

// readEnd returns the end of a stored history.
func readEnd(history iter.Seq2[sessionstore.Update, error]) (e end, err error) {
	var reader turnReader
	times := make(map[string]int)
	note := func(prompt string) {
		if prompt != "" {
			e.last = prompt
			times[prompt]++
		}
	}
	for u, err := range history {
		if err != nil {
			return end{}, err
		}
		e.size += len(u.Raw)
		note(reader.read(u))
	}
	note(reader.end())
	e.times = times[e.last]
	return e, nil
}

// isEmpty reports whether the history is empty.
func (e *end) isEmpty() bool { return e.size == 0 }

// passed reports whether u, the next update that the backend replays, comes after the end.
func (e *end) passed(u sessionstore.Update) bool {
	if e.isEmpty() {
		return true
	}
	begins := u.Kind == sessionstore.UserMessageChunk && !e.open
	if prompt := e.read(u); prompt != "" && prompt == e.last {
		e.times--
	}
	e.over = e.over || begins && e.times <= 0 && !e.own
	return e.over
}

// turnReader finds the prompts in a history. Prompts that follow each other immediately are one.
type turnReader struct {
	said hash.Hash // of what was read of a prompt, without white space
	open bool      // the last update was part of a prompt
	own  bool      // the last prompt is a command of the adapter, unknown to the backend
}

// read reads the next update, and returns the hash of the prompt that has ended before it, or "".
func (r *turnReader) read(u sessionstore.Update) (ended string) {
	if u.Kind.IsState() {
		return ""
	}
	if u.Kind != sessionstore.UserMessageChunk {
		return r.end()
	}
	said := backend.ChunkText(u)
	if !r.open {
		r.said, r.open = sha256.New(), true
		r.own = backend.IsOwnCommand(said, backend.AdapterCommands())
	}
	for word := range strings.FieldsSeq(said) {
		_, _ = io.WriteString(r.said, word)
	}
	return ""
}

// end ends the prompt that is being read, and returns its hash, or "" if it is the adapter's.
func (r *turnReader) end() (ended string) {
	if r.open && !r.own {
		ended = string(r.said.Sum(nil))
	}
	r.open = false
	return ended
}
