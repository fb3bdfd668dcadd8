package sessionstore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
)

// Cursor is an opaque position in a list. It is valid only with the filters for which it was made.
type Cursor string

// Position is the position of a session in a list.
type Position struct {
	Updated time.Time
	ID      ID
}

// Compare returns a negative number if a session at p is listed before one at other: later activity
// comes first, then the greater id.
func (p Position) Compare(other Position) int {
	return cmp.Or(other.Updated.Compare(p.Updated), cmp.Compare(other.ID, p.ID))
}

// cursorHead is the length of a cursor without its id, before it is encoded as base64url: it begins
// with a digest of the filters and the position's time in milliseconds.
const digestSize, cursorHead = 8, 8 + 8

// After returns the cursor of q's list that continues after p.
func (q Query) After(p Position) Cursor {
	raw := binary.BigEndian.AppendUint64(q.digest(), uint64(p.Updated.UnixMilli()))
	return Cursor(base64.RawURLEncoding.EncodeToString(append(raw, p.ID...)))
}

// From returns the position after which q's page starts. At the start of the list it is before all
// sessions. The error is a [*CursorError].
func (q Query) From() (Position, error) {
	if q.Cursor == "" {
		return Position{Updated: time.UnixMilli(math.MaxInt64)}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(q.Cursor))
	if err != nil || len(raw) < cursorHead || !bytes.Equal(raw[:digestSize], q.digest()) ||
		ID(raw[cursorHead:]).Validate() != nil {
		return Position{}, &CursorError{Cursor: q.Cursor}
	}
	ms := int64(binary.BigEndian.Uint64(raw[digestSize:cursorHead]))
	return Position{Updated: time.UnixMilli(ms).UTC(), ID: ID(raw[cursorHead:])}, nil
}

// digest identifies q's filters. It leaves out real paths and the filter for unused sessions, so
// that a cursor stays valid if a link or the time changes between two pages.
func (q Query) digest() []byte {
	filters := []any{q.Agent, q.Archive, nil, nil}
	if q.Cwd != nil {
		filters[2] = q.Cwd.Spelling.String()
	}
	if q.Additional != nil {
		filters[3] = append([]string{}, q.Additional.Spelling.Strings()...)
	}
	text, err := json.Marshal(filters)
	if err != nil {
		panic("sessionstore: filters cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return sum[:digestSize:digestSize]
}
