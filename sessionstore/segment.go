package sessionstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
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
		return segment, false
	}
	sum, err := strconv.ParseUint(string(segment[end+1:]), 16, 32)
	return segment[:end], err == nil && uint32(sum) == checksum(segment[:end])
}

// Unpack yields the updates of a segment. If it was damaged since it was stored, there is a note in
// the place of updates that cannot be read any more, with their number.
func Unpack(segment []byte) iter.Seq[Update] {
	return func(yield func(Update) bool) {
		lines, ok := intact(segment)
		damaged := 0
		note := func() bool {
			n := damaged
			damaged = 0
			return n == 0 || yield(damageNote(n))
		}
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			u := StoredUpdate(line)
			if !ok {
				var err error
				if u, err = parseDamaged(line); err != nil {
					damaged++
					continue
				}
			}
			if !note() || !yield(u) {
				return
			}
		}
		note()
	}
}

// parseDamaged parses an update of a segment that was damaged. A member that its kind needs may
// have another name now: clients could not show it.
func parseDamaged(line []byte) (Update, error) {
	u, err := ParseUpdate(line)
	need := ""
	switch kind := string(u.Kind); {
	case strings.HasSuffix(kind, "_chunk"):
		need = "content"
	case strings.HasPrefix(kind, "tool_call"):
		need = "toolCallId"
	case kind == "plan":
		need = "entries"
	}
	if need != "" && strictjson.Find(u.Raw, "update", need) == nil {
		err = fmt.Errorf("the update has no %s", need)
	}
	return u, err
}

// damageNote returns a note to the user.
func damageNote(n int) Update {
	are := " was damaged in the session store and is left out.)"
	if n > 1 {
		are = " were damaged in the session store and are left out.)"
	}
	return noteUpdate("(" + text.Count(n, "update", "updates") + are)
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
