package sessionstore

import (
	"bytes"
	"iter"
)

// Segment is a part of a history: updates that were stored together.
type Segment struct {
	// Number is positive, and greater than that of the segment before it. It stays as long as the
	// history is not replaced.
	Number int64
	// Body are the updates, see [Unpack].
	Body []byte
}

// segmentBytes limits the length of a packed segment with several updates, so that a history can be
// read in pages.
const segmentBytes = 64 << 10

// Pack returns the first n updates, at least one, as a segment: one a line, as [Split] returns
// them.
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

// Updates yields the updates of segments.
func Updates(segments iter.Seq2[Segment, error]) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for segment, err := range segments {
			if err != nil {
				yield(Update{}, err)
				return
			}
			for u := range Unpack(segment.Body) {
				if !yield(u, nil) {
					return
				}
			}
		}
	}
}
