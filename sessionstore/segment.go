package sessionstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"
)

// Segment is a part of a history: updates that were stored together.
type Segment struct {
	// Number is positive, and greater than that of the segment before it. It never changes.
	Number int64
	// Body are the updates, see [Unpack].
	Body []byte
}

// segmentBytes limits the length of a packed segment with several updates, so that a history can be
// read in pages.
const segmentBytes = 64 << 10

// Pack returns the first n updates, at least one, as a segment: one a line, as [Split] returns
// them, and then a line with their checksum.
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
	return fmt.Appendf(segment, "\n%08x", checksum(segment)), n
}

// checksumSize is the length of a segment's last line, with the line feed before it.
const checksumSize = 9

func checksum(updates []byte) uint32 {
	return crc32.Checksum(updates, crc32.MakeTable(crc32.Castagnoli))
}

// intact returns the updates of a segment, and whether they are as they were stored.
func intact(segment []byte) (updates []byte, ok bool) {
	end := len(segment) - checksumSize
	if end < 0 || segment[end] != '\n' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(segment[end+1:]), 16, 32)
	return segment[:end], err == nil && uint32(sum) == checksum(segment[:end])
}

// Unpack yields the updates of a segment. If it was damaged since it was stored, there is a note in
// their place.
func Unpack(segment []byte) iter.Seq[Update] {
	return func(yield func(Update) bool) {
		updates, ok := intact(segment)
		if !ok {
			yield(noteUpdate("(A part of the history was damaged in the session store, and is " +
				"left out.)"))
			return
		}
		for line := range bytes.SplitSeq(updates, []byte("\n")) {
			if !yield(StoredUpdate(line)) {
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
