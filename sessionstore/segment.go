package sessionstore

import (
	"bytes"
	"iter"
)

// segmentBytes limits the length of a packed segment with several updates, so that a history can be
// read in pages.
const segmentBytes = 64 << 10

// Pack returns the first n updates, at least one, as a segment: one a line, as [Split] returns them.
func Pack(updates []Update) (segment []byte, n int) {
	size := 0
	for n < len(updates) && (n == 0 || size+len(updates[n].Raw) < segmentBytes) {
		size += len(updates[n].Raw) + 1
		n++
	}
	segment = make([]byte, 0, size)
	for i, u := range updates[:n] {
		if i > 0 {
			segment = append(segment, '\n')
		}
		segment = append(segment, u.Raw...)
	}
	return segment, n
}

// Unpack yields the updates of a segment.
func Unpack(segment []byte) iter.Seq[Update] {
	return func(yield func(Update) bool) {
		for len(segment) > 0 {
			line, rest, _ := bytes.Cut(segment, []byte("\n"))
			segment = rest
			if !yield(StoredUpdate(line[:len(line):len(line)])) {
				return
			}
		}
	}
}
